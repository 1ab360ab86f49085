# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import re

from php import PHPApplication

SOURCES = """<?php
$config = ['admin' => ['core:AdminPassword'], 'farm' => ['exampleauth:UserPass',
    '{username}:{password}' => ['uid' => ['{username}']]]];
"""


class SimpleSAMLphp(PHPApplication):
    title = "SimpleSAMLphp"
    login = "form, with a state in its address"
    debian = ["simplesamlphp", "php-cli", "php-cgi", "php-xml", "php-mbstring", "php-curl"]
    root = "/usr/share/simplesamlphp/www"
    configuration = """
upstreams:
  simplesamlphp:
    url: https://simplesamlphp.example.com/

challenges:
  - name: simplesamlphp
    upstream: simplesamlphp
    gateway: none
    credential: simplesamlphp
    detect: { status: [302, 303], redirect-to: loginuserpass.php }
    login:
      page: /module.php/core/authenticate.php?as=farm
      url: form
      parameters: { username: "{username}", password: "{password}" }
      fields: hidden
"""
    page = ("/module.php/core/authenticate.php?as=farm", "ann")
    open_page = "its start page redirects"
    not_for = {"write": "its pages of users write nothing"}

    def start(self):
        with open("/etc/simplesamlphp/config.php") as file:
            text = file.read()
        for key, value in {
                "baseurlpath": f"'http://127.0.0.1:{self.public_port}/'", "auth.adminpassword": "'of-the-administrator-1'",
                "secretsalt": "'salt-of-the-farm'", "tempdir": f"'{self.path('tmp')}'", "logging.handler": "'errorlog'",
                "session.cookie.secure": "false", "store.type": "'phpsession'", "datadir": f"'{self.path('data')}/'",
                "session.phpsession.savepath": "null"}.items():
            text = re.sub(rf"(?m)^(\s*)(//)?\s*'{re.escape(key)}' => .*$", lambda found: f"{found[1]}'{key}' => {value},", text, count=1)
        text = re.sub(r"'exampleauth' => false", "'exampleauth' => true", text)
        if "'exampleauth' => true" not in text:
            text = text.replace("'module.enable' => [", "'module.enable' => ['exampleauth' => true,", 1)
        self.file("config/config.php", text)
        self.file("config/authsources.php", SOURCES.format(username=self.username, password=self.password))
        self.serve_php(environment={"SIMPLESAMLPHP_CONFIG_DIR": self.path("config")}, answers="/index.php")

    def end_sessions(self):
        self.forget_sessions()
