#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Reloads a wrong configuration: status, journal and the reload's exit code report it, and the service goes on with the old one.
. "$(dirname "$0")/prelude.sh"

configuration=/etc/countersign/countersign.yaml
cp $configuration right
systemctl start countersign.socket
balance | grep -F '1,438.20'
before=$(show MainPID)
show StatusText | grep '^Serving bank, server at systemd:countersign\.$'

step "a reload takes up what has changed"
sed -i 's|path: /open/|path: /other/, strip-prefix: true|' $configuration
fails curl -fs -o /dev/null http://127.0.0.1:8080/other/open/x
systemctl reload countersign.service
curl -fsS -o /dev/null http://127.0.0.1:8080/other/open/x

step "errors are refused"
sed -i 's|upstream: bank|upstream: banc|' $configuration
fails systemctl reload countersign.service
systemctl is-active countersign.service
show StatusText | grep "^Reload refused, the old configuration stays in force: $configuration:3:15: listeners\[0\]\.upstream: .* (and 1 more)"
eventually sh -c "journalctl --no-pager -u countersign.service PRIORITY=3 -o cat | grep '^reload refused'"
eventually sh -c "journalctl --no-pager -u countersign.service -o cat | grep '^countersign: reload refused, the old'"
balance >/dev/null
curl -fsS -o /dev/null http://127.0.0.1:8080/other/open/x

step "so are sockets that nobody passes or claims"
sed 's|systemd:countersign|systemd:other|' right >$configuration
fails systemctl reload countersign.service
show StatusText | grep '^Reload refused.*systemd:other.*FileDescriptorName=other'
balance >/dev/null

step "a right one is taken up again"
cp right $configuration
systemctl reload countersign.service
show StatusText | grep '^Serving bank'
[ "$before" = "$(show MainPID)" ]
[ "$(show NRestarts)" = 0 ]
[ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]

step "entries of the journal have fields"
journal countersign.service CHALLENGE=bank -o json | python3 -c '
from json import loads
from sys import stdin
entry = [loads(line) for line in stdin if "login succeeded" in line][0]
assert entry["LOGGER"] == "audit" and entry["PRIORITY"] == "5" and entry["EXCHANGE_ID"], entry
assert entry["CODE_FILE"].endswith("/LoginLog.swift") and int(entry["CODE_LINE"]) > 0, entry
assert entry["CODE_FUNC"].startswith("write") and int(entry["TOOK_MS"]) >= 0, entry
assert entry["SYSLOG_IDENTIFIER"] == "countersign" and entry["_TRANSPORT"] == "journal", entry
'
sed -i 's|http://127.0.0.1:8081/$|http://127.0.0.1:9/|' $configuration
systemctl reload countersign.service
fails curl -fs -o /dev/null http://127.0.0.1:8080/open/x
eventually sh -c 'journalctl --no-pager UPSTREAM=server PRIORITY=4 -o cat | grep "^exchange failed"'

step "elsewhere they are text on a terminal, and JSON in a file"
sed 's|systemd:countersign|127.0.0.1:8087|' right >by-hand.yaml
mkdir /run/by-hand
export STATE_DIRECTORY=/run/by-hand RUNTIME_DIRECTORY=/run/by-hand
countersign serve --config by-hand.yaml 2>json &
eventually grep '^{"time":".*"level":"notice","logger":"daemon","message":"ready",' json
kill $!
wait $!
script --quiet --flush --command "exec countersign serve --config by-hand.yaml" text >/dev/null &
eventually grep 'notice.* ready listeners=127.0.0.1:8087' text
countersign reload --config by-hand.yaml
by_hand=$(echo /run/by-hand/reload.*)
kill "${by_hand##*.}"
wait $!
unset STATE_DIRECTORY RUNTIME_DIRECTORY

step "the start fails where a socket is not claimed, or not passed"
cp right $configuration
systemctl stop countersign.service
systemctl start extra.socket
fails systemctl start countersign.service
[ "$(show ExecMainStatus)" = 78 ]
show StatusText | grep '^Not started: .*"extra", which no listener'
[ "$(show NRestarts)" = 0 ]
systemctl stop extra.socket countersign.socket
systemctl reset-failed
fails systemctl start countersign.service
show StatusText | grep '^Not started: .*systemd:countersign, which the service manager did not pass'

step end
