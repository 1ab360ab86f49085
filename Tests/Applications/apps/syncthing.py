# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import re

from application import Application


class Syncthing(Application):
    title = "Syncthing"
    login = "Basic once, then a cookie and a token against forged requests"
    debian = ["syncthing"]
    configuration = """
upstreams:
  syncthing:
    url: https://syncthing.example.com/

challenges:
  - name: syncthing
    upstream: syncthing
    gateway: none
    credential: syncthing
    detect: { status: [401, 403] }
    login:
      url: /
      method: GET
      headers: { Authorization: "Basic {base64:username:password}" }
    inject: { X-CSRF-Token-ABCDE: "{cookie:CSRF-Token-ABCDE}" }
"""
    page = ("/", "Syncthing")

    def localized(self, text):
        # The first five letters of the device's name.
        with open(self.path("home/config.xml")) as file:
            found = re.search(r'<device id="(\w{5})', file.read())
        return text.replace("ABCDE", found[1])

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

    def end_sessions(self):
        self.restart()

    def write(self, caller):
        return caller.post("/rest/system/ping")
