#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Logs in by a browser in a unit of its own, installed as docs/challenges/scripts.md says.
. "$(dirname "$0")/prelude.sh"

step "an application whose login page only a script builds"
chmod +x /srv/fakes/scripted
/srv/fakes/scripted 8070 >/run/fake.log 2>&1 &
trap 'kill %1 %2' EXIT
eventually curl -sf http://127.0.0.1:8070/open/

step "the units of the page"
given=/srv/browser-login
install -D -m 0755 $given/browser-login /usr/lib/countersign/browser-login
install -m 0644 $given/countersign-browser.socket $given/countersign-browser@.service /etc/systemd/system/
install -D -m 0644 $given/countersign-group.conf /etc/systemd/system/countersign.service.d/browser.conf
groupadd --system countersign-helpers
# A process in a chroot, as all are here, cannot make the user namespace that the browser's own sandbox needs.
mkdir /etc/systemd/system/countersign-browser@.service.d
printf '[Service]\nExecStart=\nExecStart=/usr/lib/countersign/browser-login --no-sandbox\n' \
    >/etc/systemd/system/countersign-browser@.service.d/chroot.conf
systemctl daemon-reload
systemctl start countersign-browser.socket

step "nobody else may have the browser log in"
fails setpriv --reuid=65534 --regid=65534 --clear-groups \
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("/run/countersign-browser.socket")'

step "the first request logs in"
systemctl start countersign.service
curl -sS --max-time 80 http://127.0.0.1:8080/app/ >answer || true
grep -F '"principal": "ann"' answer || {
    cat answer /run/fake.log
    journalctl --no-pager -o short-precise | tail -n 60
    exit 1
}
[ "$(grep -c '^login ann ok' /run/fake.log)" = 1 ]

step "nothing of the browser is left"
none_left() { ! pgrep -f user-data-dir >/dev/null; }
eventually none_left
fails sh -c 'find /tmp /var/tmp -name "browser-login*" | grep .'

step "a wrong password is sent once"
countersign sessions drop portal
printf wrong >/etc/countersign/secrets/portal.password
systemctl restart countersign.service
for _ in 1 2 3; do curl -sS --max-time 80 http://127.0.0.1:8080/app/ >answer; done
grep -F login-latched answer
[ "$(grep -c '^login ann wrong' /run/fake.log)" = 1 ]
step end
