# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from php import PHPApplication
from simplesaml import ROOT, configure


class SimpleSAMLphp(PHPApplication):
    title = "SimpleSAMLphp"
    login = "form, with a state in its address"
    debian = ["simplesamlphp", "php-cli", "php-cgi", "php-xml", "php-mbstring", "php-curl"]
    root = ROOT
    configuration = """
upstreams:
  simplesamlphp:
    url: https://simplesamlphp.example.com/

challenges:
  - name: simplesamlphp
    upstream: simplesamlphp
    gateway: form
    credential: simplesamlphp
    login: { page: /module.php/core/authenticate.php?as=farm }
"""
    page = ("/module.php/core/authenticate.php?as=farm", "ann")
    open_page = "its start page redirects"
    not_for = {"write": "its pages of users write nothing"}

    def start(self):
        folder = configure(self, f"http://127.0.0.1:{self.public_port}")
        self.serve_php(environment={"SIMPLESAMLPHP_CONFIG_DIR": folder}, answers="/index.php")

    def end_sessions(self):
        self.forget_sessions()
