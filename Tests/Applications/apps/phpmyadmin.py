# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import glob
import os

from mariadb import MariaDBApplication
from web import inputs

SETTINGS = """<?php
$cfg['blowfish_secret'] = '{secret}';
$cfg['TempDir'] = '{folder}/tmp';
$cfg['Servers'][1]['auth_type'] = 'cookie';
$cfg['Servers'][1]['host'] = 'localhost';
$cfg['Servers'][1]['socket'] = '{socket}';
"""


class PHPMyAdmin(MariaDBApplication):
    title = "phpMyAdmin"
    login = "form"
    debian = ["phpmyadmin", *MariaDBApplication.debian]
    answers = ["phpmyadmin phpmyadmin/dbconfig-install boolean false", "phpmyadmin phpmyadmin/reconfigure-webserver multiselect"]
    configuration = """
upstreams:
  phpmyadmin:
    url: https://phpmyadmin.example.com/

challenges:
  - name: phpmyadmin
    upstream: phpmyadmin
    gateway: form
    credential: phpmyadmin
"""
    page = ("/index.php?route=/server/databases", "information_schema")
    open_page = ("/robots.txt", "Disallow")

    def start(self):
        self.serve_mariadb(f"GRANT ALL ON *.* TO '{self.username}'@'localhost' IDENTIFIED BY '{self.password}'")
        self.root = self.path("pages")
        self.run("cp", "-rL", "/usr/share/phpmyadmin", self.root)
        rules = self.path("pages/libraries/vendor_config.php")
        with open(rules) as file:
            text = file.read()
        self.file("pages/libraries/vendor_config.php", text.replace("'/etc/phpmyadmin/config.inc.php'", f"'{self.path('settings.php')}'"))
        os.makedirs(self.path("tmp"))
        self.settings("a-secret-of-thirty-two-letters-1")
        self.serve_php(answers="/index.php")

    def settings(self, secret):
        self.file("settings.php", SETTINGS.format(secret=secret, folder=self.folder, socket=self.socket))

    def end_sessions(self):
        # Its cookies hold name and password, encrypted by this secret.
        self.settings("a-secret-of-thirty-two-letters-2")
        self.forget_sessions()

    def write(self, caller):
        form = inputs(caller.get("/index.php?route=/server/databases").text, "new_db")
        fields = dict(form, new_db="hens", db_collation="utf8mb4_general_ci", ajax_request="1")
        answer = caller.post("/index.php?route=/server/databases/create", form=fields)
        assert glob.glob(self.path("mariadb/hens")), f"no database was made: {answer}"
        return answer
