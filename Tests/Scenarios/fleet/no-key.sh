#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# A host without the fleet's key does not start, and says how to make one.
. "$(dirname "$0")/prelude.sh"

env -i STATE_DIRECTORY="$PWD/host1" RUNTIME_DIRECTORY="$PWD/host1" COUNTERSIGN_BANK_PIN__PIN=1234 \
    timeout 20 "$COUNTERSIGN" serve --config "$PWD/host1/countersign.yaml" >refused 2>&1 && exit 1
cat refused
# shellcheck disable=SC2016
grep 'sessions.key: the credential fleet has no key that can be used; make one by `openssl rand -base64 32`' refused
step end
