#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Installs the package: it starts nothing by itself, serves system, instances and users, is upgraded in traffic, and leaves nothing
# running.
. "$(dirname "$0")/prelude.sh"

package() { dpkg --force-unsafe-io --no-triggers "$@" >dpkg.log 2>&1 || { cat dpkg.log; return 1; }; }
# The demonstration is one of them; those that have just ended may still be there for a moment.
running() {
    for _ in $(seq 100); do
        [ "$(cat /proc/[0-9]*/comm 2>/dev/null | grep -cx countersign)" = "$1" ] && return
        sleep 0.1
    done
    grep -lx countersign /proc/[0-9]*/comm
    return 1
}

step "nothing is started or enabled"
cp /srv/* .
rm -rf /etc/countersign
package --install countersign.deb
running 1
fails systemctl is-enabled countersign.service
fails countersign check
fails test -e /etc/countersign/countersign.yaml
countersign check --config /usr/share/doc/countersign/examples/minimal.yaml
zcat /usr/share/man/man5/countersign.yaml.5.gz | grep -q '^\.SH "LISTENERS"'

step "one file is written, one credential sealed by the example of the unit"
cp bank.yaml /etc/countersign/countersign.yaml
printf 1234 | systemd-creds encrypt --name=bank-pin.pin - /etc/countersign/bank-pin.pin.cred
for unit in countersign.service countersign@.service; do
    mkdir "/etc/systemd/system/$unit.d"
    { echo '[Service]'; sed -n 's/^#\(LoadCredentialEncrypted=bank-pin\)/\1/p' /usr/lib/systemd/system/countersign.service; } \
        >"/etc/systemd/system/$unit.d/pin.conf"
done
systemctl daemon-reload
systemctl enable --now countersign.socket countersign.service
balance | grep -F '1,438.20'
countersign wait bank
systemctl reload countersign.service

step "instances run beside it"
sed 's|systemd:countersign|127.0.0.1:8083|' bank.yaml >/etc/countersign/second.yaml
cp bank.yaml /etc/countersign/third.yaml
systemctl enable --now countersign@second.service countersign@third.socket
curl -fsS --max-time 20 http://127.0.0.1:8083/balance >/dev/null
curl -fsS --max-time 20 --unix-socket /run/countersign@third.sock http://localhost/balance >/dev/null
countersign status --socket /run/countersign@second/admin.sock >/dev/null
systemctl reload countersign@second.service
running 4

as_ann() {
    setpriv --reuid=ann --regid=ann --clear-groups env HOME=/home/ann XDG_RUNTIME_DIR=/run/user/ann "$@"
}
useradd ann
mkdir /home/ann/.config/countersign
sed 's|sources: .systemd.|sources: [env]|' bank.yaml >/home/ann/.config/countersign/countersign.yaml
chown -R ann: /home/ann
install -d -o ann -g ann -m 0700 /run/user/ann
# The work of logind, which these namespaces do not have.
systemd-run --quiet --unit=manager --uid=ann -p Type=notify -p Delegate=yes \
    -E HOME=/home/ann -E XDG_RUNTIME_DIR=/run/user/ann /lib/systemd/systemd --user

step "it runs for a user without root, too"
as_ann systemctl --user enable --now countersign.socket
as_ann curl -fsS --max-time 20 --unix-socket /run/user/ann/countersign.sock http://localhost/balance |
    grep -F '1,438.20'
as_ann systemctl --user show -P StatusText countersign.service | grep '^Serving bank'
as_ann countersign status --config /home/ann/.config/countersign/countersign.yaml >/dev/null
test -d /home/ann/.local/state/countersign

as_ann systemctl --user reload countersign.service
as_ann systemctl --user restart countersign.service
as_ann curl -fsS --max-time 20 --unix-socket /run/user/ann/countersign.sock http://localhost/balance >/dev/null
echo '{' >/home/ann/.config/countersign/countersign.yaml
fails as_ann systemctl --user reload countersign.service
systemctl stop manager.service

step "an upgrade in traffic fails no request, and keeps the configuration"
dpkg-deb --raw-extract countersign.deb newer
sed -i 's/^Version: .*/Version: 9.0-0upstream1/' newer/DEBIAN/control
dpkg-deb -Znone --build newer newer.deb >/dev/null
steady-callers --pause 0.02 --least 200 enough /balance /open/x >load.log 2>&1 &
load=$!
first=$(show MainPID)
second=$(show MainPID countersign@second.service)
package --install newer.deb
balance >/dev/null
touch enough
wait "$load" || { cat load.log; exit 1; }
cat load.log
[ "$first" != "$(show MainPID)" ]
[ "$second" != "$(show MainPID countersign@second.service)" ]
cmp bank.yaml /etc/countersign/countersign.yaml
dpkg-query -W -f '${Version}\n' countersign | grep '^9\.0'

step "a removal leaves nothing running"
package --remove countersign
running 1
fails balance
fails test -e /usr/bin/countersign
fails test -e /usr/lib/systemd/system/countersign.service
test -e /etc/countersign/countersign.yaml
test -d /var/lib/countersign/

step "a purge removes configuration and state, and no other file of the administrator's"
package --purge countersign
[ "$(find /etc/systemd/system -type l -name 'countersign*' | wc -l)" = 0 ]
[ "$(find /var/lib /var/lib/private /var/log /var/log/private -maxdepth 1 '(' -name countersign -o -name 'countersign@*' ')' | wc -l)" = 0 ]
fails test -e /etc/countersign/countersign.yaml
test -e /etc/countersign/bank-pin.pin.cred
step end
