#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Log in each for itself where the engine was never there, and share from then on.
. "$(dirname "$0")/prelude.sh"

mapfile -t environment <host1/environment
doctor() { host 1 env "${environment[@]}" "$COUNTERSIGN" doctor --config "$PWD/host1/countersign.yaml"; }
fails doctor >doctor.log 2>&1
grep 'FAILED *engine *does not answer: .*onnect' doctor.log
for n in $hosts; do serve "$n"; done
for n in $hosts; do [ "$(balance "$n")" = 200 ]; done
for n in $hosts; do metric "$n" 'countersign_fleet_logins_total{turn="alone"}'; done >alone
[ $(($(paste -sd+ alone))) -ge 3 ]
ask 1 status | grep '^status *ready'
engine
for n in $hosts; do eventually knows_engine "$n" 1; done
doctor >doctor.log 2>&1 || true
grep 'ok *engine *answers' doctor.log
shared() { [ -n "$(redis-cli -h 10.9.0.1 --scan --pattern '{countersign}:*')" ]; }
eventually shared
for n in $hosts; do [ "$(balance "$n")" = 200 ]; done
[ "$(logins)" -le 3 ]
step end
