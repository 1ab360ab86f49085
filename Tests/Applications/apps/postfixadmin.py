# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os
import shutil

from php import PHPApplication
from web import inputs

SETTINGS = """<?php
$CONF['configured'] = true;
$CONF['database_type'] = 'sqlite';
$CONF['database_name'] = '{folder}/mail.db';
$CONF['password_validation'] = [];
$CONF['emailcheck_resolve_domain'] = 'NO';
$CONF['encrypt'] = 'md5crypt';
"""


class PostfixAdmin(PHPApplication):
    title = "PostfixAdmin"
    login = "form"
    debian = ["postfixadmin", "php-cli", "php-cgi", "php-sqlite3", "php-mbstring"]
    username = "ann@example.com"
    configuration = """
upstreams:
  postfixadmin:
    url: https://postfixadmin.example.com/

challenges:
  - name: postfixadmin
    upstream: postfixadmin
    gateway: form
    credential: postfixadmin
    prove-at: /main.php
"""
    page = ("/main.php", "ann@example.com")
    open_page = ("/css/bootstrap.css", "Sticky footer")

    def prepare(self):
        pages = self.path("pages")
        shutil.copytree("/usr/share/postfixadmin", pages, symlinks=True)
        os.unlink(f"{pages}/templates_c")
        os.mkdir(f"{pages}/templates_c")
        for name in ("config.inc.php", "config.local.php"):
            os.unlink(f"{pages}/{name}")
        shutil.copy("/etc/postfixadmin/config.inc.php", pages)
        self.file("pages/dbconfig.inc.php", "<?php\n")
        self.file("pages/config.local.php", SETTINGS.format(folder=self.folder))
        self.file("mail.db", "")
        self.run("sh", "-c", f"cd {pages}/public && php upgrade.php")
        self.run("sh", "-c", f"cd {pages} && php scripts/postfixadmin-cli.php admin add {self.username} --superadmin 1 --active 1 "
            f"--password {self.password} --password2 {self.password}")

    def start(self):
        self.root = self.path("pages/public")
        self.serve_php(answers="/login.php")

    def end_sessions(self):
        self.forget_sessions()

    def write(self, caller):
        form = inputs(caller.get("/edit.php?table=domain").text, "value[domain]")
        answer = caller.post("/edit.php?table=domain", form={**form, "value[domain]": "farm.example"})
        assert "farm.example" in caller.get("/list.php?table=domain").text, f"no domain was added: {answer}"
        return answer
