# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import base64

import processes
from application import Application
from web import Caller


def word(text):
    return base64.b64encode(text.encode()).decode()


class Etcd(Application):
    title = "etcd"
    login = "JSON, answered by a token"
    debian = ["etcd-server"]
    username = "root"
    configuration = """
upstreams:
  etcd:
    url: https://etcd.example.com/

challenges:
  - name: etcd
    upstream: etcd
    gateway: none
    credential: etcd
    detect:
      - { status: 400, json: { /error: user name is empty } }
      - { status: 401, json: { /error: invalid auth token } }
    login:
      url: /v3/auth/authenticate
      body: json
      parameters: { name: "{username}", password: "{password}" }
      extract: { token: /token }
    failed: { status: 400, because: wrong-password }
    inject: { Authorization: "{token}" }
"""
    # Asked for by POST.
    page = ("/v3/kv/range", word("Berta"))
    open_page = ("/version", "etcdserver")

    def start(self):
        peers = processes.free_port()
        self.serve(
            "etcd", "--data-dir", self.path("data"), "--listen-client-urls", f"http://127.0.0.1:{self.port}", "--advertise-client-urls",
            f"http://127.0.0.1:{self.port}", "--listen-peer-urls", f"http://127.0.0.1:{peers}", "--bcrypt-cost", "4",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peers}", "--initial-cluster", f"default=http://127.0.0.1:{peers}",
            answers="/health")

    def prepare(self):
        self.start()
        caller = Caller(self.port)
        for path, document in (
                ("/v3/kv/put", {"key": word("hen"), "value": word("Berta")}), ("/v3/auth/role/add", {"name": "root"}),
                ("/v3/auth/user/add", {"name": self.username, "password": self.password}),
                ("/v3/auth/user/grant", {"user": self.username, "role": "root"}), ("/v3/auth/enable", {})):
            answer = caller.post(path, document=document)
            assert answer.status == 200, f"{path}: {answer.text}"
        self.stop()

    def ask(self, caller):
        return caller.post(self.page[0], document={"key": word("hen")})

    def end_sessions(self):
        # Its tokens are in memory.
        self.restart()

    def write(self, caller):
        answer = caller.post("/v3/kv/put", document={"key": word("eggs"), "value": word("seven")})
        read = caller.post("/v3/kv/range", document={"key": word("eggs")})
        assert word("seven") in read.text, f"nothing was written: {answer}"
        return answer
