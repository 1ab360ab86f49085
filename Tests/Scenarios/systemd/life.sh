#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Starts the service by socket, logs in, reloads, restarts without a refused request, and stops.
. "$(dirname "$0")/prelude.sh"

step "the first request starts it"
systemctl start countersign.socket
if systemctl is-active --quiet countersign.service; then exit 1; fi
balance | grep -F '1,438.20'
systemctl is-active countersign.service
show StatusText | grep '^Serving bank'
before=$(show MainPID)

step "a reload keeps the process"
systemctl reload countersign.service
[ "$before" = "$(show MainPID)" ]

step "restarts refuse nobody"
: >failures
callers=
for _ in 1 2 3 4; do
    while [ ! -e enough ]; do balance >/dev/null 2>>failures || echo "exit $?" >>failures; done &
    callers="$callers $!"
done
for _ in 1 2 3; do
    served=$(grep -c 'GET /mfp/api/adapters/bank/balance served' demo.log)
    systemctl restart countersign.service
    # The next one comes when callers are at it again.
    until [ "$(grep -c 'GET /mfp/api/adapters/bank/balance served' demo.log)" -gt $((served + 5)) ]; do
        sleep 0.02
    done
done
touch enough
# shellcheck disable=SC2086
wait $callers
cat failures
[ ! -s failures ]
[ "$before" != "$(show MainPID)" ]

step "one registration and one answer were enough for all of them"
[ "$(grep -c 'client of com.sample.pincode registered' demo.log)" = 1 ]
[ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]

step "it stops in order"
systemctl stop countersign.socket countersign.service
show Result | grep '^success$'
if balance 2>/dev/null; then exit 1; fi

step "the journal has entries with fields"
journalctl -u countersign.service CHALLENGE=bank LOGGER=audit -o cat --no-pager | grep -q '^login succeeded'
step "end"
