#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Kills the node that logs in: another one logs in within the lifetime of the lease.
. "$(dirname "$0")/prelude.sh"

store
for n in $nodes; do serve "$n"; eventually knows_store "$n" 1; done

step "the leader hangs in its login"
rm released
for n in $nodes; do storm "$n" 20 >"storm$n" & storms[n]=$!; done
leads() { [ "$(metric "$1" 'countersign_shared_logins_total{turn="lease"}')" = 1 ]; }
leader=
someone() { for n in $nodes; do if leads "$n"; then leader=$n; return 0; fi; done; return 1; }
for n in $(seq 200); do if someone; then break; fi; sleep 0.05; done
[ -n "$leader" ]
sleep 1
leaders() { local count=0 n; for n in $nodes; do if leads "$n"; then count=$((count + 1)); fi; done; echo $count; }
[ "$(leaders)" = 1 ]

step "and is killed"
kill -9 "${daemon[$leader]}"
killed=$(date +%s%N)
touch released
for n in $nodes; do wait "${storms[$n]}" || true; done
took=$((($(date +%s%N) - killed) / 1000000))
echo "took $took ms"
# The lease of 5 s, a second by which nodes spread their requests, and the delay of a busy machine. A login that no node took over
# would hang for minutes.
[ $took -lt 20000 ]
for n in $nodes; do if [ "$n" != "$leader" ]; then [ "$(cat "storm$n")" = 20x200 ]; fi; done
[ "$(logins)" -le 2 ]
for n in $nodes; do if [ "$n" != "$leader" ]; then metric "$n" 'countersign_shared_logins_total{turn="lease"}'; fi; done >leases
# One lease for each scope that the resource asks for, at any node.
[ $(($(paste -sd+ leases))) -le 2 ]
step end
