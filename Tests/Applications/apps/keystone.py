# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from application import Application

SETTINGS = """[DEFAULT]
log_dir = {folder}
[database]
connection = sqlite:///{folder}/keystone.db
[fernet_tokens]
key_repository = {folder}/fernet
[credential]
key_repository = {folder}/credential
[identity]
password_hash_rounds = 4
[cache]
enabled = false
"""


class Keystone(Application):
    title = "OpenStack Keystone"
    login = "JSON, answered by a token in a field"
    pypi = ["keystone==30.0.0"]
    username = "admin"
    configuration = """
upstreams:
  keystone:
    url: https://keystone.example.com/

challenges:
  - name: keystone
    upstream: keystone
    gateway: none
    credential: keystone
    detect: { status: 401 }
    login:
      url: /v3/auth/tokens
      body: json
      parameters:
        auth:
          identity:
            methods: [password]
            password: { user: { name: "{username}", domain: { id: default }, password: "{password}" } }
          scope: { project: { name: admin, domain: { id: default } } }
      extract: { token: "header:X-Subject-Token" }
    inject: { X-Auth-Token: "{token}" }
"""
    page = ("/v3/users", '"admin"')
    open_page = ("/v3", "identity")

    def prepare(self):
        settings = self.file("keystone.conf", SETTINGS.format(folder=self.folder))
        for name in ("fernet", "credential"):
            os.makedirs(self.path(name), mode=0o700)
        manage = [os.path.join(os.path.dirname(self.python), "keystone-manage"), "--config-file", settings]
        user = ["--keystone-user", "root", "--keystone-group", "root"] if self.is_root else []
        self.run(*manage, "db_sync", seconds=200)
        self.run(*manage, "fernet_setup", *user)
        self.run(*manage, "credential_setup", *user)
        self.run(*manage, "bootstrap", "--bootstrap-password", self.password)
        self.file("serve.py", f"""
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server
from keystone.server.wsgi import initialize_public_application
class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64
make_server("127.0.0.1", {self.port}, initialize_public_application(), Server).serve_forever()
""")

    def start(self):
        self.serve(self.python, self.path("serve.py"), environment={"OS_KEYSTONE_CONFIG_FILES": self.path("keystone.conf")}, answers="/v3")

    def end_sessions(self):
        # Its tokens are encrypted by these keys.
        user = ["--keystone-user", "root", "--keystone-group", "root"] if self.is_root else []
        manage = [os.path.join(os.path.dirname(self.python), "keystone-manage"), "--config-file", self.path("keystone.conf")]
        self.run("find", self.path("fernet"), "-type", "f", "-delete")
        self.run(*manage, "fernet_setup", *user)
        self.restart()

    def write(self, caller):
        answer = caller.post("/v3/projects", document={"project": {"name": "hens"}})
        assert '"hens"' in caller.get("/v3/projects").text, f"no project was made: {answer}"
        return answer
