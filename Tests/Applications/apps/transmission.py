# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application


class Transmission(Application):
    title = "Transmission"
    login = "Basic, and 409 with a session id"
    documented = True
    debian = ["transmission-daemon"]
    configuration = """
upstreams:
  transmission:
    url: https://transmission.example.com/

challenges:
  - name: transmission
    upstream: transmission
    gateway: none
    credential: transmission
    detect: { status: [401, 409] }
    login:
      url: /transmission/rpc
      method: GET
      headers: { Authorization: "Basic {base64:username:password}" }
      extract: { id: "header:X-Transmission-Session-Id" }
    inject: { X-Transmission-Session-Id: "{id}", Authorization: "Basic {base64:username:password}" }
"""
    page = ("/transmission/web/", "Transmission")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        self.serve(
            "transmission-daemon", "--foreground", "--config-dir", self.path("config"), "--port", self.port, "--auth", "--username",
            self.username, "--password", self.password, "--rpc-bind-address", "127.0.0.1", "--bind-address-ipv4", "127.0.0.1",
            "--peerport", str(self.port + 1 if self.port < 65535 else 1025), "--no-dht", "--no-lpd", "--no-portmap", "--no-utp",
            answers="/transmission/web/")

    def write(self, caller):
        return caller.post("/transmission/rpc", document={"method": "session-set", "arguments": {"speed-limit-down": 77}})
