# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import base64
import hashlib

from application import Application
from recording import Browser


class QBittorrent(Application):
    title = "qBittorrent"
    login = "form, answered by a word"
    debian = ["qbittorrent-nox"]
    configuration = """
upstreams:
  qbittorrent:
    url: https://qbittorrent.example.com/

challenges:
  - name: qbittorrent
    upstream: qbittorrent
    gateway: none
    credential: qbittorrent
    detect: { status: 403 }
    login:
      url: /api/v2/auth/login
      parameters: { username: "{username}", password: "{password}" }
    prove-at: /api/v2/app/version
"""
    page = ("/api/v2/app/preferences", "save_path")
    open_page = ("/", "qBittorrent")

    def start(self):
        salt = b"salt-of-the-farm"
        digest = hashlib.pbkdf2_hmac("sha512", self.password.encode(), salt, 100000)
        secret = f"{base64.b64encode(salt).decode()}:{base64.b64encode(digest).decode()}"
        self.file("qBittorrent/config/qBittorrent.conf", f"""[LegalNotice]
Accepted=true
[BitTorrent]
Session\\DHTEnabled=false
Session\\LSDEnabled=false
[Preferences]
WebUI\\Address=127.0.0.1
WebUI\\HostHeaderValidation=false
WebUI\\Password_PBKDF2="@ByteArray({secret})"
WebUI\\UseUPnP=false
WebUI\\Username={self.username}
""")
        self.serve("qbittorrent-nox", f"--profile={self.folder}", f"--webui-port={self.port}")

    def recording(self):
        browser = Browser(self.public_port)
        browser.get("/")
        browser.post("/api/v2/auth/login", form={"username": self.username, "password": self.password})
        browser.get(self.page[0])
        return browser.save(self.path("recording.har"))

    def end_sessions(self):
        self.restart()

    def write(self, caller):
        answer = caller.post("/api/v2/torrents/createCategory", form={"category": "farm"})
        assert "farm" in caller.get("/api/v2/torrents/categories").text, f"no category was made: {answer}"
        return answer
