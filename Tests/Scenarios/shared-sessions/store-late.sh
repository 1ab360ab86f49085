#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Starts the session store late: each node logs in for itself before that, and all share a session afterwards.
. "$(dirname "$0")/prelude.sh"

mapfile -t environment <node1/environment
doctor() { node 1 env "${environment[@]}" "$COUNTERSIGN" doctor --config "$PWD/node1/countersign.yaml"; }
fails doctor >doctor.log 2>&1
grep 'FAILED *session store *does not answer: .*onnect' doctor.log
for n in $nodes; do serve "$n"; done
for n in $nodes; do [ "$(balance "$n")" = 200 ]; done
for n in $nodes; do metric "$n" 'countersign_shared_logins_total{turn="alone"}'; done >alone
[ $(($(paste -sd+ alone))) -ge 3 ]
ask 1 status | grep '^status *ready'
store
for n in $nodes; do eventually knows_store "$n" 1; done
doctor >doctor.log 2>&1 || true
grep 'ok *session store *answers' doctor.log
shared() { [ -n "$(redis-cli -h 10.9.0.1 --scan --pattern '{countersign}:*')" ]; }
eventually shared
for n in $nodes; do [ "$(balance "$n")" = 200 ]; done
[ "$(logins)" -le 3 ]
step end
