#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Log in once in all, cold and with a hundred requests each at once, and hold the session through ten seconds without
# the engine.
. "$(dirname "$0")/prelude.sh"

engine
for n in $hosts; do serve "$n"; eventually knows_engine "$n" 1; done

step "cold"
for n in $hosts; do storm "$n" 100 >"storm$n" & storms[n]=$!; done
for n in $hosts; do wait "${storms[$n]}"; done
cat storm1 storm2 storm3
[ "$(cat storm1 storm2 storm3 | sort -u)" = 100x200 ]
[ "$(logins)" = 1 ]

step "without the engine"
for n in $hosts; do
    host "$n" "$SCRIPTS/steady-callers" --pause 0.02 --least 500 "$PWD/enough" /balance >"load$n" 2>&1 &
    loads[n]=$!
done
kill -9 $redis
for n in $hosts; do eventually knows_engine "$n" 0; done
ask 1 status | grep '^engine *away'
[ "$(ask 1 status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["checks"]["session-engine"])')" = away ]
sleep 10
engine
for n in $hosts; do eventually knows_engine "$n" 1; done
sleep 1
touch enough
for n in $hosts; do wait "${loads[$n]}" || { cat "load$n"; exit 1; }; done
cat load1 load2 load3
[ "$(logins)" = 1 ]

step "what was lost is there again"
there() { [ -n "$(redis-cli -h 10.9.0.1 --scan --pattern '{countersign}:*')" ]; }
eventually there
step end
