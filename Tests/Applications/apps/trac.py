# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os
import sqlite3

from application import Application


class Trac(Application):
    title = "Trac"
    login = "Basic at one address, then a cookie"
    debian = ["apache2-utils"]
    pypi = ["Trac==1.6", "setuptools<80"]
    configuration = """
upstreams:
  trac:
    url: https://trac.example.com/

challenges:
  - name: trac
    upstream: trac
    scheme: basic
    credential: trac
    prove-at: /farm/login
"""
    page = ("/farm/prefs", "logged in as")
    open_page = ("/farm/wiki", "Welcome to Trac")
    needs = dict.fromkeys(
        ("cold", "burst", "write", "ended", "wrong"),
        "needs a login by a scheme at one address, whose cookie is the session: `login: { url: /login, scheme: basic }`")

    def prepare(self):
        self.run(self.python, "-m", "trac.admin.console", self.path("farm"), "initenv", "Farm", "sqlite:db/trac.db")
        self.run("htpasswd", "-cbm", self.path("users"), self.username, self.password)

    def start(self):
        self.serve(
            self.python, "-m", "trac.web.standalone", "--hostname=127.0.0.1", f"--port={self.port}",
            f"--basic-auth=farm,{self.path('users')},farm", self.path("farm"), answers="/farm/wiki")

    def end_sessions(self):
        with sqlite3.connect(os.path.join(self.path("farm"), "db/trac.db"), timeout=20) as database:
            database.execute("DELETE FROM auth_cookie")

    def write(self, caller):
        answer = caller.get("/farm/wiki/Hens?action=edit")
        assert answer.status == 200, f"the answer is {answer}"
        return answer
