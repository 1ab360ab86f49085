# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""SimpleSAMLphp: its configuration, and as the identity provider of applications of `signon.py`."""

import glob
import os
import re

DEBIAN = ["simplesamlphp", "php-cli", "php-cgi", "php-xml", "php-mbstring", "php-curl", "openssl"]
ROOT = "/usr/share/simplesamlphp/www"
SOURCES = """<?php
$config = ['admin' => ['core:AdminPassword'], 'farm' => ['exampleauth:UserPass',
    '{username}:{password}' => ['uid' => ['{username}']]]];
"""
HOSTED = """<?php
$metadata['__DYNAMIC:1__'] = ['host' => '__DEFAULT__', 'privatekey' => '{key}', 'certificate' => '{certificate}', 'auth' => 'farm'];
"""
REMOTE = """<?php
$metadata['{entity}'] = [
    'AssertionConsumerService' => '{own}/mellon/postResponse', 'NameIDFormat' => 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient'];
"""


def configure(application, address, more=None):
    """Writes the configuration, from Debian's, for the address that browsers would use; returns its folder."""
    with open("/etc/simplesamlphp/config.php") as file:
        text = file.read()
    for key, value in {
            "baseurlpath": f"'{address}/'", "auth.adminpassword": "'of-the-administrator-1'",
            "secretsalt": "'salt-of-the-farm'", "tempdir": f"'{application.path('tmp')}'", "logging.handler": "'errorlog'",
            "session.cookie.secure": "false", "store.type": "'phpsession'", "datadir": f"'{application.path('data')}/'",
            "session.phpsession.savepath": "null", **(more or {})}.items():
        text = re.sub(rf"(?m)^(\s*)(//)?\s*'{re.escape(key)}' => .*$", lambda found: f"{found[1]}'{key}' => {value},", text, count=1)
    text = re.sub(r"'exampleauth' => false", "'exampleauth' => true", text)
    if "'exampleauth' => true" not in text:
        text = text.replace("'module.enable' => [", "'module.enable' => ['exampleauth' => true,", 1)
    application.file("config/config.php", text)
    application.file("config/authsources.php", SOURCES.format(username=application.username, password=application.password))
    return application.path("config")


class SimpleSAML:
    """A mix-in: SimpleSAMLphp as the SAML identity provider, by PHP's own server."""

    def start_provider(self):
        key, certificate = self.key_pair("idp")
        folder = configure(self, self.idp, {
            "enable.saml20-idp": "true", "metadatadir": f"'{self.path('metadata')}/'", "certdir": f"'{self.folder}/'",
            "session.cookie.samesite": "null"})
        self.file("metadata/saml20-idp-hosted.php", HOSTED.format(key=os.path.basename(key), certificate=os.path.basename(certificate)))
        self.file("metadata/saml20-sp-remote.php", REMOTE.format(entity=self.entity, own=self.own))
        sessions = self.path("provider-sessions")
        os.makedirs(sessions, exist_ok=True)
        self.serve(
            "php", "-d", f"session.save_path={sessions}", "-d", "display_errors=0", "-S", f"127.0.0.1:{self.provider_port}", "-t", ROOT,
            name="simplesamlphp", answers=None, environment={"PHP_CLI_SERVER_WORKERS": "4", "SIMPLESAMLPHP_CONFIG_DIR": folder}
        ).wait_until_it_answers(self.provider_port, "/index.php")

    def end_sessions_of_provider(self):
        for path in glob.glob(self.path("provider-sessions/sess_*")):
            os.unlink(path)
