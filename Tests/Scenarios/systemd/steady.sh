#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Reloads a hundred times and restarts twenty times under traffic of 32 connections: no request fails.
. "$(dirname "$0")/prelude.sh"

logged() { [ "$(journal countersign.service -o cat | grep -c "$1")" = "$2" ]; }
systemctl start countersign.socket
balance >/dev/null
cp /etc/countersign/countersign.yaml one
sed 's|path: /open/|path: /open/, methods: [GET]|; $a limits: { callers: 512 }' one >two
steady-callers --pause 0.05 --least 1000 enough /balance /open/x >load.log 2>&1 &
load=$!

step "a hundred reloads"
process=$(show MainPID)
for _ in $(seq 50); do
    for configuration in two one; do
        cp $configuration /etc/countersign/countersign.yaml
        systemctl reload countersign.service
    done
done
[ "$(show MainPID)" = "$process" ]
eventually logged '^reloaded' 100

step "twenty restarts"
for _ in $(seq 20); do systemctl restart countersign.service; done
[ "$(show MainPID)" != "$process" ]
eventually logged '^ready' 21
touch enough
wait "$load" || { cat load.log; exit 1; }
cat load.log

step "on one login"
[ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]
step end
