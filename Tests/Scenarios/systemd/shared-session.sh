#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Shares a session between two services: both use the login of one, survive the loss of the session store, and restore its data.
. "$(dirname "$0")/prelude.sh"

store() { redis-server --port 6379 --bind 127.0.0.1 --save '' --daemonize yes >/dev/null; eventually redis-cli ping; }
holds() { redis-cli --scan --pattern '{countersign}:session:*' | grep .; }
other() { curl -fsS --max-time 20 http://127.0.0.1:8086/balance; }
logins() { grep -c 'answer to PinCodeAttempts' demo.log; }
store

step "a session that one has won"
systemctl start countersign.service
balance | grep -F '1,438.20'
eventually holds
[ "$(logins)" = 1 ]

step "is another's"
systemctl start countersign@other.service
other | grep -F '1,438.20'
[ "$(logins)" = 1 ]

step "the session store away stops neither"
redis-cli shutdown nosave || true
eventually sh -c "journalctl --no-pager -u countersign.service -o cat | grep '^the session store is away'"
balance >/dev/null
other >/dev/null

step "and gets back what it has lost"
store
eventually holds
other >/dev/null
[ "$(logins)" = 1 ]
systemctl stop countersign.service countersign@other.service
show Result | grep '^success$'
redis-cli shutdown nosave || true
step end
