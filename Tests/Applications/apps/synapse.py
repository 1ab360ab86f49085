# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import sqlite3

from application import Application
from recording import Browser

SETTINGS = """server_name: farm
pid_file: {folder}/pid
listeners: [{{ port: {port}, type: http, bind_addresses: [127.0.0.1], resources: [{{ names: [client] }}] }}]
database: {{ name: sqlite3, args: {{ database: {folder}/synapse.db }} }}
media_store_path: {folder}/media
signing_key_path: {folder}/signing.key
registration_shared_secret: of-the-farm
report_stats: false
trusted_key_servers: []
suppress_key_server_warning: true
bcrypt_rounds: 4
rc_login: {{ address: {{ per_second: 1000, burst_count: 1000 }}, account: {{ per_second: 1000, burst_count: 1000 }},
  failed_attempts: {{ per_second: 1000, burst_count: 1000 }} }}
"""


class Synapse(Application):
    title = "Matrix Synapse"
    login = "JSON, answered by a token"
    documented = True
    pypi = ["matrix-synapse==1.163.2"]
    configuration = """
upstreams:
  synapse:
    url: https://synapse.example.com/

challenges:
  - name: synapse
    upstream: synapse
    gateway: none
    credential: synapse
    detect: { status: 401, content-type: application/json }
    login:
      url: /_matrix/client/v3/login
      body: json
      parameters: { type: m.login.password, user: "{username}", password: "{password}" }
      extract: { token: /access_token }
    inject: { Authorization: "Bearer {token}" }
"""
    page = ("/_matrix/client/v3/account/whoami", "@ann:farm")
    open_page = ("/_matrix/client/versions", "versions")

    def start(self):
        settings = self.file("homeserver.yaml", SETTINGS.format(folder=self.folder, port=self.port))
        synapse = [self.python, "-m", "synapse.app.homeserver", "-c", settings]
        self.run(*synapse, "--generate-keys")
        self.serve(*synapse, answers="/_matrix/client/versions")
        self.run(self.python, "-m", "synapse._scripts.register_new_matrix_user", "-c", settings, "-u", self.username, "-p",
            self.password, "-a", f"http://127.0.0.1:{self.port}")

    def recording(self):
        browser = Browser(self.public_port)
        login = {"type": "m.login.password", "user": self.username, "password": self.password}
        answer = browser.post("/_matrix/client/v3/login", document=login)
        browser.get(self.page[0], headers={"Authorization": f"Bearer {answer.json['access_token']}"})
        return browser.save(self.path("recording.har"))

    def end_sessions(self):
        self.children.pop().stop()
        with sqlite3.connect(self.path("synapse.db"), timeout=20) as database:
            database.execute("DELETE FROM access_tokens")
        self.serve(self.python, "-m", "synapse.app.homeserver", "-c", self.path("homeserver.yaml"), answers="/_matrix/client/versions")

    def write(self, caller):
        answer = caller.post("/_matrix/client/v3/createRoom", document={"name": "Hens"})
        assert "room_id" in answer.text, f"no room was made: {answer}"
        return answer
