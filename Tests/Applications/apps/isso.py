# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os
import re

from application import Application
from web import Caller


class Isso(Application):
    title = "Isso"
    login = "form, password only"
    pypi = ["isso==0.14.0", "setuptools<80"]
    fields = ["password"]
    configuration = """
upstreams:
  isso:
    url: https://isso.example.com/

challenges:
  - name: isso
    upstream: isso
    gateway: form
    credential: isso
    prove-at: /admin/
"""
    page = ("/admin/?mode=1", "Hens are fine")
    open_page = ("/info", "version")

    def start(self):
        settings = self.file("isso.cfg", f"""[general]
dbpath = {self.path('comments.db')}
host = http://localhost/
[admin]
enabled = true
password = {self.password}
[server]
listen = http://127.0.0.1:{self.port}
[guard]
enabled = false
""")
        self.serve(os.path.join(os.path.dirname(self.python), "isso"), "-c", settings, "run", answers="/info")
        Caller(self.port).post("/new?uri=%2Fhens%2F", document={"title": "Hens", "text": "Hens are fine."}, headers={
            "Origin": "http://localhost", "Host": f"127.0.0.1:{self.port}"})

    def end_sessions(self):
        self.run("sqlite3", self.path("comments.db"), "UPDATE preferences SET value = 'of-the-farm' WHERE key = 'session-key'")
        self.restart()

    def write(self, caller):
        # Only the administrator's page has the key to change a comment.
        found = re.search(r"send_edit\(1, '([\w.-]+)'", caller.get(self.page[0]).text)
        assert found, "the page has no key"
        answer = caller.post(f"/id/1/edit/{found[1]}", document={"text": "Hens are fine, and cocks."})
        assert "and cocks" in caller.get(self.page[0]).text, f"nothing was changed: {answer}"
        return answer
