# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import base64
import hashlib
import os

from application import Application
from web import inputs


class ChangeDetection(Application):
    title = "changedetection.io"
    login = "form, password only"
    documented = True
    pypi = ["changedetection.io==0.60.10"]
    fields = ["password"]
    configuration = """
upstreams:
  changedetection:
    url: https://changedetection.example.com/

challenges:
  - name: changedetection
    upstream: changedetection
    gateway: form
    credential: changedetection
"""
    page = ("/", "form/add/quickwatch")
    open_page = ("/static/styles/styles.css", "body")

    def start(self):
        salt = b"salt-of-the-farm-salt-of-the-farm"[:32]
        digest = hashlib.pbkdf2_hmac("sha256", self.password.encode(), salt, 100000)
        os.makedirs(self.path("store"), exist_ok=True)
        self.serve(
            os.path.join(os.path.dirname(self.python), "changedetection.io"), "-h", "127.0.0.1", "-p", self.port, "-d", self.path("store"),
            environment={"SALTED_PASS": base64.b64encode(salt + digest).decode()}, answers="/login")

    def end_sessions(self):
        os.unlink(self.path("store/secret.txt"))
        self.restart()

    def write(self, caller):
        form = inputs(caller.get("/").text, "url")
        answer = caller.post("/form/add/quickwatch", form=dict(form, url="https://example.com/farm", processor="text_json_diff"))
        assert "example.com/farm" in caller.get("/").text, f"nothing was added: {answer}"
        return answer
