# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import hashlib
import json

from application import Application


class Deluge(Application):
    title = "Deluge web"
    login = "JSON-RPC, password only"
    documented = True
    debian = ["deluge-web"]
    fields = ["password"]
    configuration = """
upstreams:
  deluge:
    url: https://deluge.example.com/

challenges:
  - name: deluge
    upstream: deluge
    gateway: none
    credential: deluge
    detect: { json: { /error/code: "1" } }
    login:
      url: /json
      body: json
      parameters: { method: auth.login, params: ["{password}"], id: 1 }
    failed: { json: { /result: "false" } }
"""
    # Asked for by POST.
    page = ("/json", '"error": null')
    open_page = ("/", "Deluge")

    def start(self):
        digest = hashlib.sha1(b"salt" + self.password.encode()).hexdigest()
        settings = {"pwd_salt": "salt", "pwd_sha1": digest, "port": self.port, "interface": "127.0.0.1", "first_login": False}
        self.file("config/web.conf", json.dumps({"file": 2, "format": 1}) + json.dumps(settings))
        self.serve("deluge-web", "--do-not-daemonize", "--config", self.path("config"), "--interface", "127.0.0.1", "--port", self.port)

    def ask(self, caller):
        return caller.post("/json", document={"id": 2, "method": "web.get_config", "params": []})

    def end_sessions(self):
        self.restart()

    def write(self, caller):
        answer = caller.post("/json", document={"id": 3, "method": "web.set_config", "params": [{"theme": "gray"}]})
        assert '"error": null' in answer.text, answer.text[:100]
        return answer
