# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import re

from application import Application


class Syncthing(Application):
    title = "Syncthing"
    login = "Basic, with a token against forged requests"
    debian = ["syncthing"]
    configuration = """
upstreams:
  syncthing:
    url: https://syncthing.example.com/

challenges:
  - name: syncthing
    upstream: syncthing
    scheme: basic
    credential: syncthing
"""
    page = ("/", "Syncthing")
    not_for = {"ended": "each request carries the password"}
    needs = {"write": 'needs a field from a cookie: `inject: { X-CSRF-Token-ID: "{cookie:CSRF-Token-ID}" }`, also with `scheme`'}

    def start(self):
        home = self.path("home")
        self.run("syncthing", "generate", "--home", home, "--no-default-folder", "--skip-port-probing", f"--gui-user={self.username}",
            f"--gui-password={self.password}", seconds=60)
        with open(f"{home}/config.xml") as file:
            text = file.read()
        text = re.sub(r"<address>127.0.0.1:8384</address>", f"<address>127.0.0.1:{self.port}</address>", text)
        for name in ("globalAnnounceEnabled", "localAnnounceEnabled", "relaysEnabled", "natEnabled", "crashReportingEnabled"):
            text = text.replace(f"<{name}>true<", f"<{name}>false<")
        text = text.replace("<listenAddress>default<", "<listenAddress>tcp://127.0.0.1:0<")
        self.file("home/config.xml", text)
        self.serve("syncthing", "serve", "--home", home, "--no-browser", "--no-restart", "--no-upgrade")

    def write(self, caller):
        return caller.post("/rest/system/ping")
