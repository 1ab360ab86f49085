#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Searches for three secrets: no journal, metric, page, command, process table, core dump or directory contains them.
. "$(dirname "$0")/prelude.sh"

along=$1
rejected=$2
opens=$3
chmod +x /opt/helper

step "a keyring"
# Runs a command as the daemon's user and with its credentials; its output goes to /run/inside.
inside() {
    echo "$*" >/run/inside.sh
    systemctl start inside.service
}
inside countersign keyring init
inside "printf %s $along | countersign keyring set api key"
rm /run/inside.sh

systemctl start countersign.socket

step "everything happens: use, rejection, latch, a helper that talks, an upstream that breaks"
curl -fsS -o /dev/null 'http://127.0.0.1:8080/?token=query-of-callers'
fails curl -fsS -o /dev/null http://127.0.0.1:8080/form/
fails curl -fsS -o /dev/null http://127.0.0.1:8080/form/
[ "$(grep -c "answer to form rejected" demo.log)" = 1 ]
systemctl reload countersign.service
curl -fsS -o /dev/null http://127.0.0.1:8080/

step "what operators see"
mkdir seen
seen() {
    local name=$1
    shift
    "$@" >"seen/$name" 2>&1 || true
    [ -s "seen/$name" ] || { echo "empty: $name"; return 1; }
}
for path in metrics status 'healthz?verbose' 'readyz?verbose' ''; do
    seen "admin-${path%%\?*}" curl -sS "http://127.0.0.1:8099/$path"
done
seen html curl -sS -H 'Accept: text/html' http://127.0.0.1:8099/
seen reply curl -sS http://127.0.0.1:8080/form/
fails countersign status >seen/command-status
countersign sessions list >seen/command-sessions
for what in doctor check 'login key' 'login page'; do
        inside countersign "$what" 2>/dev/null || true
mv /run/inside "seen/command-${what// /-}"
done
pid=$(show MainPID)
cp "/proc/$pid/environ" "/proc/$pid/cmdline" "/proc/$pid/status" seen/
seen show systemctl show countersign.service
seen unit-status systemctl status --no-pager --lines=1000 countersign.service
cp -r /var/lib/private/countersign seen/state
cp -rL /var/log/countersign seen/logs
[ "$(grep -c '"path":"/form/"' seen/logs/access.log)" -ge 2 ]
cp -r /run/countersign seen/runtime 2>/dev/null || true

step "a crash leaves no core dump"
kill -ABRT "$pid"
# A function, so that each try asks anew.
restarted() { [ "$(show MainPID)" != "$pid" ]; }
eventually restarted
eventually curl -fsS -o /dev/null http://127.0.0.1:8080/
fails sh -c 'find / -xdev -name "core*" -newer demo.log -size +100k -not -path "/proc/*" | grep .'
journalctl --sync
seen journal journalctl --no-pager -o export
grep -q 'login-rejected\|login failed' seen/journal

step "nobody finds them"
grep -c . seen/journal
fails grep -rFaoe "$along" -e "$rejected" -e "$opens" -e query-of-callers seen
for secret in "$along" "$rejected" "$opens"; do
    fails grep -rFaoe "$(printf %s "$secret" | base64)" seen
done
# The search finds what is there.
echo "x $rejected x" >seen/planted
grep -rqFae "$rejected" seen
step "end"
