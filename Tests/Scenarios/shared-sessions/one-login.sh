#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Sends a hundred requests to each node at once, without a session: there is one login in all. The session is kept during ten
# seconds without the session store.
. "$(dirname "$0")/prelude.sh"

store
for n in $nodes; do serve "$n"; eventually knows_store "$n" 1; done

step "cold"
for n in $nodes; do storm "$n" 100 >"storm$n" & storms[n]=$!; done
for n in $nodes; do wait "${storms[$n]}"; done
cat storm1 storm2 storm3
[ "$(cat storm1 storm2 storm3 | sort -u)" = 100x200 ]
[ "$(logins)" = 1 ]

step "without the session store"
for n in $nodes; do
    node "$n" "$SCRIPTS/steady-callers" --pause 0.02 --least 500 "$PWD/enough" /balance >"load$n" 2>&1 &
    loads[n]=$!
done
kill -9 $redis
for n in $nodes; do eventually knows_store "$n" 0; done
ask 1 status | grep '^store *away'
[ "$(ask 1 status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["checks"]["session-store"])')" = away ]
sleep 10
store
for n in $nodes; do eventually knows_store "$n" 1; done
sleep 1
touch enough
for n in $nodes; do wait "${loads[$n]}" || { cat "load$n"; exit 1; }; done
cat load1 load2 load3
[ "$(logins)" = 1 ]

step "what was lost is there again"
there() { [ -n "$(redis-cli -h 10.9.0.1 --scan --pattern '{countersign}:*')" ]; }
eventually there
step end
