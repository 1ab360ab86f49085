# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os
import sqlite3

from application import Application
from web import inputs


class Trac(Application):
    title = "Trac"
    login = "Basic at one address, then a cookie"
    documented = True
    debian = ["apache2-utils"]
    pypi = ["Trac==1.6", "setuptools<80"]
    configuration = """
upstreams:
  trac:
    url: https://trac.example.com/

challenges:
  - name: trac
    upstream: trac
    gateway: none
    credential: trac
    detect: { status: 403 }
    login:
      url: /farm/login
      method: GET
      headers: { Authorization: "Basic {base64:username:password}" }
    prove-at: /farm/wiki/Hens?action=edit
"""
    page = ("/farm/wiki/Hens?action=edit", "logged in as")
    open_page = ("/farm/wiki", "Welcome to Trac")

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
        form = inputs(caller.get("/farm/wiki/Hens?action=edit").text, "version")
        answer = caller.post("/farm/wiki/Hens", form=dict(form, text="Of the farm.", save="Submit changes"))
        assert "Of the farm." in caller.get("/farm/wiki/Hens").text, f"nothing was written: {answer}"
        return answer
