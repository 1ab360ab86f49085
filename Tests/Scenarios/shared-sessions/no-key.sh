#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Starts a node without the shared key: it does not start, and its error says how to make a key.
. "$(dirname "$0")/prelude.sh"

env -i STATE_DIRECTORY="$PWD/node1" RUNTIME_DIRECTORY="$PWD/node1" COUNTERSIGN_BANK_PIN__PIN=1234 \
    timeout 20 "$COUNTERSIGN" serve --config "$PWD/node1/countersign.yaml" >refused 2>&1 && exit 1
cat refused
# shellcheck disable=SC2016
grep 'sessions.key: the credential shared has no valid key; generate one with `openssl rand -base64 32`' refused
step end
