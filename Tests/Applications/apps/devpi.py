# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import processes
from application import Application
from web import Caller


class Devpi(Application):
    title = "devpi"
    login = "JSON, answered by a token for Basic"
    pypi = ["devpi-server==6.20.3"]
    configuration = """
upstreams:
  devpi:
    url: https://devpi.example.com/

challenges:
  - name: devpi
    upstream: devpi
    gateway: none
    credential: devpi
    detect:
      - { status: [401, 403], content-type: application/json }
      - { json: { /result/authstatus/0: noauth } }
    login:
      url: /+login
      body: json
      parameters: { user: "{username}", password: "{password}" }
      extract: { token: /result/password }
      expires: /result/expiration
    inject: { X-Devpi-Auth: "{base64:username:token}" }
"""
    page = ("/+api", '"ann"')
    open_page = ("/+status", "server-code")

    def prepare(self):
        words = ["--serverdir", self.path("server")]
        self.run(self.python, "-c", "from devpi_server.init import init; init()", *words, "--no-root-pypi")

    def start(self):
        words = ["--serverdir", self.path("server")]
        self.serve(
            self.python, "-m", "devpi_server", *words, "--host", "127.0.0.1", "--port", self.port, "--offline-mode", answers="/+api")
        Caller(self.port).post(f"/{self.username}", document={"password": self.password}, method="PUT")

    def end_sessions(self):
        processes.run(["rm", "-f", self.path("server/.secret")], self.folder)
        self.restart()

    def write(self, caller):
        return caller.post("/ann/hens", document={"bases": [], "type": "stage"}, method="PUT")
