#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Uses a rejected credential: it is sent once in all, and again after one node's latch was opened.
. "$(dirname "$0")/prelude.sh"

store
for n in $nodes; do serve "$n"; eventually knows_store "$n" 1; done
for n in $nodes; do storm "$n" 20 >"storm$n" & storms[n]=$!; done
for n in $nodes; do wait "${storms[$n]}"; done
cat storm1 storm2 storm3
fails grep x200 storm1 storm2 storm3
[ "$(logins)" = 1 ]

step "also after a restart of a node that had not sent it, and while the session store is away"
for n in 1 2 3; do [ "$(balance $n)" != 200 ]; done
[ "$(logins)" = 1 ]
for n in $nodes; do kill "${daemon[$n]}"; wait "${daemon[$n]}" || true; serve "$n"; eventually knows_store "$n" 1; done
for n in $nodes; do balance "$n"; grep -q 'login-latched\|login-rejected' "answer$n"; done
[ "$(logins)" = 1 ]

step "unlatch on one node"
ask 2 unlatch bank-pin
all_open() { local n; for n in $nodes; do ! ask "$n" status | grep '^latch' || return 1; done; }
eventually all_open
for n in $nodes; do balance "$n"; done
[ "$(logins)" = 2 ]
step end
