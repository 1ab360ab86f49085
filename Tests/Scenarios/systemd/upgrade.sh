#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Upgrades from a package that had the long example as its conffile, and goes back: dpkg asks no question, an edited file stays, an
# unchanged example is removed, and the state is kept.
. "$(dirname "$0")/prelude.sh"

configuration=/etc/countersign/countersign.yaml
# A question would find no answer here, and fail.
package() { dpkg --force-unsafe-io --no-triggers "$@" </dev/null >dpkg.log 2>&1 || { cat dpkg.log; return 1; }; }
installed() { [ "$(dpkg-query -W -f '${Version}' countersign)" = "$1-0upstream1" ]; }
# Nothing but these is there, and no backup of dpkg's beside it.
only() { diff -u <(printf '%s\n' "$@") <(ls -A /etc/countersign); }
has_unit() { grep -q '^ExecStart=/usr/bin/countersign serve' /usr/lib/systemd/system/countersign.service; }

step "the package of before is made, and two of later"
cp /srv/* .
rm -rf /etc/countersign
dpkg-deb --raw-extract countersign.deb older
sed -i 's/^Version: .*/Version: 0.0.9-0upstream1/' older/DEBIAN/control
{ echo '# older'; cat older/usr/share/doc/countersign/examples/countersign.yaml; } >"older$configuration"
echo "$configuration" >older/DEBIAN/conffiles
dpkg-deb -Znone --build older older.deb >/dev/null
for version in 9.0 9.1; do
    rm -rf newer
    dpkg-deb --raw-extract countersign.deb newer
    sed -i "s/^Version: .*/Version: $version-0upstream1/" newer/DEBIAN/control
    dpkg-deb -Znone --build newer "$version.deb" >/dev/null
done

step "an example that nobody has changed goes, and nothing is left of it"
package --install older.deb
only countersign.yaml
package --install 9.0.deb
installed 9.0
has_unit
[ -z "$(ls -A /etc/countersign)" ]
fails systemctl is-enabled countersign.service
cp bank.yaml "$configuration"
package --install 9.1.deb
cmp bank.yaml "$configuration"
package --purge countersign

step "a configuration of one's own stays, and so does the state"
package --install older.deb
cp bank.yaml "$configuration"
printf 1234 >/etc/countersign/pin
mkdir -p /etc/systemd/system/countersign.service.d
printf '[Service]\nLoadCredential=bank-pin.pin:/etc/countersign/pin\n' >/etc/systemd/system/countersign.service.d/pin.conf
systemctl daemon-reload
systemctl enable --now countersign.socket countersign.service
balance | grep -F '1,438.20'
established=$(countersign sessions list --json | grep -o '"established_at":[^,}]*')
[ -n "$established" ]
cp -a /var/lib/countersign/ state
[ -n "$(ls -A state/)" ]
process=$(show MainPID)
package --install 9.0.deb
installed 9.0
has_unit
only countersign.yaml pin
cmp bank.yaml "$configuration"
diff -r -x 'process-*' state/ /var/lib/countersign/
[ "$process" != "$(show MainPID)" ]
[ "$established" = "$(countersign sessions list --json | grep -o '"established_at":[^,}]*')" ]
balance | grep -F '1,438.20'
countersign check

step "the next upgrade asks nothing either"
package --install 9.1.deb
installed 9.1
only countersign.yaml pin
cmp bank.yaml "$configuration"

step "apt goes back when it is told to, and keeps both as well"
get() { apt-get -q -y -o Dpkg::Options::=--force-unsafe-io "$@" ./older.deb </dev/null >apt.log 2>&1; }
fails get install
grep -F -e --allow-downgrades apt.log
installed 9.1
get --allow-downgrades -o Dpkg::Options::=--force-confold install || { cat apt.log; exit 1; }
installed 0.0.9
has_unit
cmp bank.yaml "$configuration"
balance | grep -F '1,438.20'
step end
