# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application
from web import inputs


class Fossil(Application):
    title = "Fossil"
    login = "form"
    debian = ["fossil"]
    configuration = """
upstreams:
  fossil:
    url: https://fossil.example.com/

challenges:
  - name: fossil
    upstream: fossil
    gateway: form
    credential: fossil
    prove-at: /setup_ulist
"""
    page = ("/setup_ulist", "ann")
    open_page = ("/style.css", "body")

    def prepare(self):
        repository, environment = self.path("farm.fossil"), {"HOME": self.folder}
        self.run("fossil", "init", "--admin-user", self.username, repository, environment=environment)
        self.run("fossil", "user", "password", self.username, self.password, "-R", repository, environment=environment)

    def start(self):
        self.serve(
            "fossil", "server", "--port", self.port, "--localhost", "--nossl", self.path("farm.fossil"),
            environment={"HOME": self.folder, "USER": "nobody"}, answers="/login")

    def end_sessions(self):
        self.run("sqlite3", self.path("farm.fossil"), "UPDATE user SET cookie = NULL, cexpire = 0")

    def write(self, caller):
        form = inputs(caller.get("/setup_uedit?id=0").text, "login")
        fields = dict(form, login="bert", info="Bert", pw="of-bert-1", apply="1")
        # Like a browser, whose pages come from the application's own address.
        answer = caller.post("/setup_uedit", form=fields, headers={"Referer": f"http://127.0.0.1:{self.public_port}/setup_uedit"})
        assert "bert" in caller.get("/setup_ulist").text, f"no user was added: {answer}"
        return answer
