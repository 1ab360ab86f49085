#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Stops a loop of the service: the watchdog ends the service, which comes back, and drains within its time.
. "$(dirname "$0")/prelude.sh"

recovered() { [ "$(show NRestarts)" = "$1" ] && [ "$(show ActiveState)" = active ]; }
systemctl start countersign.socket countersign@slow.service
balance >/dev/null

step "an endless stream is cut off before systemd would kill"
curl -sN "http://127.0.0.1:8086/open/stream?lines=100000&pause=100" >endless &
eventually test -s endless
slow=$(show MainPID countersign@slow.service)
systemctl stop --no-block countersign@slow.service
stopping=$(date +%s)

step "one loop of several stands still"
before=$(show MainPID)
worker=$(grep -lx worker-0 /proc/"$before"/task/*/comm | cut -d / -f 5)
python3 /usr/local/lib/hold.py "$worker" &
eventually recovered 1
journal countersign.service -o cat | grep "^the event loop of a worker is stuck"
journal countersign.service -o cat | grep -m 1 'Watchdog timeout'
[ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]
balance >/dev/null

step "the whole process stands still"
kill -STOP "$(show MainPID)"
eventually recovered 2
balance >/dev/null
[ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]

step "a stop lets what is under way finish"
curl -sN "http://127.0.0.1:8080/open/stream?lines=40&pause=50" >stream &
stream=$!
eventually test -s stream
systemctl stop countersign.socket countersign.service
wait "$stream"
[ "$(grep -c '^data: tick' stream)" = 40 ]
[ "$(show Result)" = success ]

step "the endless one has ended"
ended() { [ "$(show ActiveState countersign@slow.service)" = inactive ]; }
eventually ended
[ "$(show Result countersign@slow.service)" = success ]
[ $(($(date +%s) - stopping)) -lt 35 ]
# The journal may be late; of a process that has ended by then it knows the process id, but not the unit.
told() { journalctl --no-pager -o cat _PID="$slow" | grep '^exchanges were cut off at the end of the drain'; }
eventually told
step end
