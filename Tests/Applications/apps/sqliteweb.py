# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os
import sqlite3

from application import Application


class SQLiteWeb(Application):
    title = "sqlite-web"
    login = "form, password only"
    pypi = ["sqlite-web==0.8.2"]
    fields = ["password"]
    configuration = """
upstreams:
  sqliteweb:
    url: https://sqliteweb.example.com/

challenges:
  - name: sqliteweb
    upstream: sqliteweb
    gateway: form
    credential: sqliteweb
"""
    page = ("/", "hens")
    not_for = {"ended": "its cookie is signed by a constant key and never ends"}
    open_page = ("/static/css/bootstrap.min.css", "Bootstrap")

    def start(self):
        with sqlite3.connect(self.path("farm.db")) as database:
            database.execute("CREATE TABLE IF NOT EXISTS hens (name TEXT)")
        self.serve(
            os.path.join(os.path.dirname(self.python), "sqlite_web"), "-H", "127.0.0.1", "-p", self.port, "-x", "-P", self.path("farm.db"),
            environment={"SQLITE_WEB_PASSWORD": self.password}, answers="/login/")

    def write(self, caller):
        caller.post("/query/", form={"sql": "INSERT INTO hens VALUES ('Berta')"})
        answer = caller.get("/hens/content/")
        assert "Berta" in answer.text, f"nothing was written: {answer}"
        return answer
