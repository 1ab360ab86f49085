#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Send a rejected credential once, and let it be sent again when one of them is told so.
. "$(dirname "$0")/prelude.sh"

engine
for n in $hosts; do serve "$n"; eventually knows_engine "$n" 1; done
for n in $hosts; do storm "$n" 20 >"storm$n" & storms[n]=$!; done
for n in $hosts; do wait "${storms[$n]}"; done
cat storm1 storm2 storm3
fails grep x200 storm1 storm2 storm3
[ "$(logins)" = 1 ]

step "also after a restart of a host that had not sent it, and while the engine is away"
for n in 1 2 3; do [ "$(balance $n)" != 200 ]; done
[ "$(logins)" = 1 ]
for n in $hosts; do kill "${daemon[$n]}"; wait "${daemon[$n]}" || true; serve "$n"; eventually knows_engine "$n" 1; done
for n in $hosts; do balance "$n"; grep -q 'login-latched\|login-rejected' "answer$n"; done
[ "$(logins)" = 1 ]

step "unlatch on one host"
ask 2 unlatch bank-pin
all_open() { local n; for n in $hosts; do ! ask "$n" status | grep '^latch' || return 1; done; }
eventually all_open
for n in $hosts; do balance "$n"; done
[ "$(logins)" = 2 ]
step end
