#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# Gives files in /etc to the unit by LoadCredential=; doctor and login work as root without changing the unit's files.
. "$(dirname "$0")/prelude.sh"

umask 077
cd /etc/countersign
chmod 755 .
echo COUNTERSIGN_BANK_PIN__PIN=1234 >secrets.env
openssl rand -base64 32 >keyring.key
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=client -days 2 -keyout client.key -out client.pem 2>/dev/null
chmod 644 client.pem

step "before the first start the commands are told where the files are"
fails countersign check 2>&1 | grep -F CREDENTIALS_DIRECTORY
CREDENTIALS_DIRECTORY=/etc/countersign countersign check
CREDENTIALS_DIRECTORY=/etc/countersign countersign keyring init
printf secret | CREDENTIALS_DIRECTORY=/etc/countersign countersign keyring set ledger-key key

step "the unit reads what only root can read"
systemctl start countersign.socket
balance | grep -F '1,438.20'
owner=$(stat -c %u /var/lib/private/countersign)
[ "$owner" != 0 ]
[ "$(stat -c %u /var/lib/private/countersign/keyring)" = "$owner" ]

step "root's commands see what the unit sees"
countersign check
countersign doctor bank | tee doctor.txt
fails grep -F FAILED doctor.txt
grep -F 'keyring: /var/lib/countersign/keyring is readable' doctor.txt
countersign login bank-pin | tee login.txt
grep -F 'session established' login.txt
countersign keyring list | grep -F ledger-key

step "and leave its files to it"
find /var/lib/private/countersign ! -user "$owner" | tee others.txt
[ ! -s others.txt ]
systemctl restart countersign.service
balance | grep -F '1,438.20'
journal countersign.service >journal.txt
fails grep -F 'request refused' journal.txt
step "end"
