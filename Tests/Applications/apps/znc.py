# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import hashlib

from application import Application
from web import inputs


class ZNC(Application):
    title = "ZNC"
    login = "form"
    debian = ["znc"]
    configuration = """
upstreams:
  znc:
    url: https://znc.example.com/

challenges:
  - name: znc
    upstream: znc
    gateway: form
    credential: znc
    detect: { status: 302, body-contains: "&quot;/&quot;" }
    prove-at: /mods/global/webadmin/listusers
"""
    page = ("/mods/global/webadmin/listusers", "ann")
    open_page = ("/robots.txt", "Disallow")

    def start(self):
        salt = "salt-of-the-farm"
        digest = hashlib.sha256((self.password + salt).encode()).hexdigest()
        self.file("data/configs/znc.conf", f"""Version = 1.8.2
AnonIPLimit = 200
LoadModule = webadmin
<Listener web>
    AllowIRC = false
    AllowWeb = true
    Host = 127.0.0.1
    IPv6 = false
    Port = {self.port}
    SSL = false
</Listener>
<User {self.username}>
    Admin = true
    Nick = ann
    <Pass password>
        Method = sha256
        Hash = {digest}
        Salt = {salt}
    </Pass>
</User>
""")
        # As root it waits half a minute.
        user = ["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups"] if self.is_root else []
        if user:
            self.folder_for_all("data")
            self.run("chown", "-R", "www-data:www-data", self.path("data"))
        self.serve(*user, "znc", "--foreground", "--datadir", self.path("data"))

    def end_sessions(self):
        self.restart()

    def write(self, caller):
        form = inputs(caller.get("/mods/global/webadmin/adduser").text, "newuser")
        form = form or inputs(caller.get("/mods/global/webadmin/adduser").text, "user")
        fields = dict(form, user="bert", password="of-bert-1", password2="of-bert-1", nick="bert", submitted="1")
        answer = caller.post("/mods/global/webadmin/adduser", form=fields)
        assert "bert" in caller.get("/mods/global/webadmin/listusers").text, f"no user was added: {answer}"
        return answer
