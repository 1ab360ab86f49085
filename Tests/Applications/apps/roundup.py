# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from application import Application
from web import inputs


class Roundup(Application):
    title = "Roundup"
    login = "form"
    pypi = ["roundup==2.6.0"]
    username = "admin"
    configuration = """
upstreams:
  roundup:
    url: https://roundup.example.com/

challenges:
  - name: roundup
    upstream: roundup
    gateway: form
    credential: roundup
    prove-at: /farm/
"""
    page = ("/farm/user1", "admin")
    open_page = ("/farm/@@file/style.css", "body")

    def prepare(self):
        admin = [self.python, "-m", "roundup.scripts.roundup_admin", "-i", self.path("tracker")]
        self.run(*admin, "install", "classic", "anydbm",
            f"mail_domain=localhost,mailhost=localhost,tracker_web=http://127.0.0.1:{self.public_port}/farm/,rdbms_backend=sqlite")
        self.run(*admin, "initialise", self.password)

    def start(self):
        admin = [self.python, "-m", "roundup.scripts.roundup_admin", "-i", self.path("tracker")]
        user = ["-u", "www-data", "-g", "www-data"] if self.is_root else []
        if user:
            self.folder_for_all("tracker")
            self.run("chown", "-R", "www-data:www-data", self.path("tracker"))
        self.serve(
            self.python, "-m", "roundup.scripts.roundup_server", "-n", "127.0.0.1", "-p", self.port, *user, f"farm={self.path('tracker')}",
            answers="/farm/")

    def end_sessions(self):
        self.stop()
        os.unlink(self.path("tracker/db/sessions.db"))
        self.start()

    def write(self, caller):
        form = inputs(caller.get("/farm/keyword?@template=item").text, "name")
        answer = caller.post("/farm/keyword", form=dict(form, name="hens"))
        assert "hens" in caller.get("/farm/keyword?@template=item").text, f"no keyword was added: {answer}"
        return answer
