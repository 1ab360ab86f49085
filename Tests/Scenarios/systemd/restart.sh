#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Restarts and kills the service under traffic of 32 connections: no request fails, and no login is needed.
. "$(dirname "$0")/prelude.sh"

served() { grep -c ' served' demo.log; }
# All that is not a resource: challenges, pages, answers, tokens. What scope a route needs is not handed over, and is
# asked for once more.
conversation() { grep '^  upstream: ' demo.log | grep -v -e ' served with' -e insufficient_scope; }
logins() { conversation | wc -l; }
sessions() { countersign sessions list --config /etc/countersign/countersign.yaml; }
paths="/balance /form/ /digest/ /oauth/api/echo /basic/ /checks/balance"

systemctl start countersign.socket

step "each session is established once"
for path in $paths; do curl -fsS --max-time 20 -o /dev/null "http://127.0.0.1:8080$path"; done
sessions
held=$(sessions | grep -c ': held')
[ "$held" -ge 6 ]
won=$(logins)

step "restarts under load cost nothing"
# shellcheck disable=SC2086
steady-callers --least 500 enough $paths >load.log 2>&1 &
load=$!
for _ in 1 2 3; do
    before=$(served)
    until [ "$(served)" -gt $((before + 200)) ]; do sleep 0.02; done
    process=$(show MainPID)
    systemctl restart countersign.service
    [ "$process" != "$(show MainPID)" ]
done
before=$(served)
until [ "$(served)" -gt $((before + 200)) ]; do sleep 0.02; done
touch enough
wait "$load" || { cat load.log; exit 1; }
cat load.log
conversation | tail -n +"$((won + 1))"
[ "$(logins)" = "$won" ]
sessions
[ "$(sessions | grep -c 'taken over')" = "$held" ]

step "nor does a kill"
process=$(show MainPID)
systemctl kill --signal=KILL --kill-who=main countersign.service
until [ "$(show MainPID)" != "$process" ] && [ "$(show ActiveState)" = active ]; do sleep 0.1; done
for path in /balance /form/ /oauth/api/echo /basic/ /checks/balance; do
    curl -fsS --max-time 20 -o /dev/null "http://127.0.0.1:8080$path"
done
conversation | tail -n +"$((won + 1))"
[ "$(logins)" = "$won" ]

step "what changes no login's meaning costs none"
sed -i -e 's/login: at-start/login: on-demand/' -e 's/gateway: j-security-check/&\n    prove-at: \/form\//' \
    /etc/countersign/countersign.yaml
grep 'prove-at: /form/' /etc/countersign/countersign.yaml
systemctl restart countersign.service
for path in /balance /form/ /oauth/api/echo /basic/ /checks/balance; do
    curl -fsS --max-time 20 -o /dev/null "http://127.0.0.1:8080$path"
done
conversation | tail -n +"$((won + 1))"
[ "$(logins)" = "$won" ]

step "what is changed is won again, and nothing else"
sed -i 's/grant: client-credentials/&, client-auth: body/' /etc/countersign/countersign.yaml
systemctl restart countersign.service
for path in /balance /form/ /basic/ /checks/balance; do
    curl -fsS --max-time 20 -o /dev/null "http://127.0.0.1:8080$path"
done
[ "$(logins)" = "$won" ]
journalctl -u countersign.service CHALLENGE=api -o cat --no-pager | grep '^session not taken over'
curl -fsS --max-time 20 -o /dev/null http://127.0.0.1:8080/oauth/api/echo
[ "$(logins)" -gt "$won" ]

step "a stop forgets them"
systemctl stop countersign.socket countersign.service
show Result | grep '^success$'
systemctl start countersign.socket
won=$(logins)
curl -fsS --max-time 20 -o /dev/null http://127.0.0.1:8080/form/
[ "$(logins)" -gt "$won" ]
journalctl -u countersign.service -o cat --no-pager | grep -c '^sessions taken over'
if journalctl -u countersign.service -o export --no-pager | grep -aE 'Bearer [A-Za-z0-9]|JSESSIONID=|YW5uOmRlbW8'; then exit 1; fi
step "end"
