# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import io
import os
import zipfile

from application import Application

SETTINGS = """database: sqlite:{folder}/maubot.db
plugin_directories: {{ upload: {folder}/plugins, load: [{folder}/plugins], trash: {folder}/trash }}
plugin_databases: {{ sqlite: {folder}/databases }}
server: {{ hostname: 127.0.0.1, port: {port}, public_url: "http://127.0.0.1:{port}", unshared_secret: {secret} }}
homeservers: {{}}
admins: {{ root: "", {username}: {password} }}
logging: {{ version: 1 }}
"""


class Maubot(Application):
    title = "maubot"
    login = "JSON, answered by a token"
    pypi = ["maubot==0.6.0"]
    configuration = """
upstreams:
  maubot:
    url: https://maubot.example.com/

challenges:
  - name: maubot
    upstream: maubot
    gateway: none
    credential: maubot
    detect: { status: 401 }
    login:
      url: /_matrix/maubot/v1/auth/login
      body: json
      parameters: { username: "{username}", password: "{password}" }
      extract: { token: /token }
    inject: { Authorization: "Bearer {token}" }
"""
    page = ("/_matrix/maubot/v1/auth/ping", "ann")
    open_page = ("/_matrix/maubot/", "Maubot")

    def ask(self, caller):
        return caller.post(self.page[0])

    def serve_with(self, secret):
        for name in ("plugins", "trash", "databases"):
            os.makedirs(self.path(name), exist_ok=True)
        settings = self.file("config.yaml", SETTINGS.format(
            folder=self.folder, port=self.port, secret=secret, username=self.username, password=self.password))
        self.serve(self.python, "-m", "maubot", "-c", settings, answers="/_matrix/maubot/")

    def start(self):
        self.serve_with("first-secret-of-the-farm")

    def end_sessions(self):
        # Its tokens are signed by the secret.
        self.stop()
        self.serve_with("second-secret-of-the-farm")

    def write(self, caller):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("maubot.yaml", "{ maubot: 0.1.0, id: com.example.hens, version: 1.0.0, modules: [hens], main_class: Hens }")
            archive.writestr("hens/__init__.py", "from maubot import Plugin\nclass Hens(Plugin): pass\n")
        answer = caller.send("POST", "/_matrix/maubot/v1/plugins/upload", packed.getvalue(), {"Content-Type": "application/zip"})
        assert "com.example.hens" in caller.get("/_matrix/maubot/v1/plugins").text, f"nothing was uploaded: {answer.text[:100]}"
        return answer
