#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Drops a session at one node: it ends at all nodes.
. "$(dirname "$0")/prelude.sh"

store
for n in $nodes; do serve "$n"; eventually knows_store "$n" 1; done
holds() { ask "$1" sessions list | grep -q ': held'; }
[ "$(balance 1)" = 200 ]
step "who never asked holds it, too"
for n in $nodes; do eventually holds "$n"; done
tokens=$(grep -c 'token' demo.log || true)
[ "$(balance 2)$(balance 3)" = 200200 ]
[ "$(logins)" = 1 ]
[ "$(grep -c 'token' demo.log || true)" = "$tokens" ]

# News about a session that was read a moment ago are mistaken for those of its publication.
sleep 1.5
step "dropped by one"
ask 3 sessions drop --all
none() { local n; for n in $nodes; do ! holds "$n" || return 1; done; }
eventually none
step end
