#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Leads from the package to the first request through a login, under a real systemd.
. "$(dirname "$0")/prelude.sh"

step "2. install"
rm -rf /etc/countersign
dpkg --force-unsafe-io --no-triggers --install /srv/countersign.deb >dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
test -e /usr/share/doc/countersign/docs/getting-started.md

step "3. say where requests go"
cp /srv/first.yaml /etc/countersign/countersign.yaml
countersign check
countersign doctor >doctor.log
grep -E 'without a login: 401, WWW-Authenticate: Basic \(realm [^)]*\); no challenge is configured there' doctor.log

step "4. say what answers the login"
cp /srv/second.yaml /etc/countersign/countersign.yaml
countersign check

step "5. keep the secret"
export COUNTERSIGN_KEYRING_PASSPHRASE=correct-horse
countersign keyring init
printf ann | countersign keyring set wiki username
printf demo | countersign keyring set wiki password
printf correct-horse | systemd-creds encrypt --name=keyring-passphrase - /etc/countersign/keyring-passphrase.cred
mkdir -p /etc/systemd/system/countersign.service.d
printf '[Service]\nLoadCredentialEncrypted=keyring-passphrase:/etc/countersign/keyring-passphrase.cred\n' \
    >/etc/systemd/system/countersign.service.d/keyring.conf
systemctl daemon-reload

step "6. try the login by itself"
countersign login wiki | grep -F 'session established'

step "7. start it"
systemctl enable --now countersign
countersign wait && countersign status

step "8. the first request"
curl -fsS --max-time 20 http://127.0.0.1:8080/ >/dev/null
countersign sessions list | grep -F 'wiki: held'
countersign explain http://127.0.0.1:8080/ | grep -F 'credential wiki'

step "a changed password is taken without a restart"
printf wrong | countersign keyring set wiki password
printf demo | countersign keyring set wiki password
countersign sessions drop wiki
curl -fsS --max-time 20 http://127.0.0.1:8080/ >/dev/null
systemctl reload countersign
step end
