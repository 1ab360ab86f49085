# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from application import Application


class Tryton(Application):
    title = "Tryton"
    login = "JSON-RPC, answered by number and session"
    pypi = ["trytond==8.2.1"]
    username = "admin"
    configuration = """
upstreams:
  tryton:
    url: https://tryton.example.com/

challenges:
  - name: tryton
    upstream: tryton
    gateway: none
    credential: tryton
    detect: { status: 401 }
    login:
      url: /farm/rpc/
      body: json
      parameters: { id: 0, method: common.db.login, params: ["{username}", { password: "{password}" }, en] }
      extract: { number: /result/0, session: /result/1 }
    inject: { Authorization: "Session {base64:username:number:session}" }
"""
    # Asked for by POST.
    page = ("/farm/rpc/", '"login":"admin"')
    open_page = "it answers no GET"

    def prepare(self):
        settings = self.file("trytond.conf", f"""[web]
listen = 127.0.0.1:{self.port}
[database]
uri = sqlite://
path = {self.folder}
[session]
authentications = password
super_pwd =
""")
        self.file("farm.sqlite", "")
        program = os.path.join(os.path.dirname(self.python), "trytond-admin")
        pass_file = self.file("pass", self.password + "\n")
        self.run(program, "-c", settings, "-d", "farm", "--all", "--email", "a@example.com", "-p",
            environment={"TRYTONPASSFILE": pass_file}, seconds=120)

    def start(self):
        program = os.path.join(os.path.dirname(self.python), "trytond")
        self.serve(program, "-c", self.path("trytond.conf"), "-d", "farm")

    @staticmethod
    def call(caller, method, *parameters):
        return caller.post("/farm/rpc/", document={"id": 1, "method": method, "params": [*parameters, {}]})

    def ask(self, caller):
        return self.call(caller, "model.res.user.read", [1], ["login"])

    def end_sessions(self):
        self.run("sqlite3", self.path("farm.sqlite"), "DELETE FROM ir_session")

    def write(self, caller):
        answer = self.call(caller, "model.res.group.create", [{"name": "Farmers"}])
        assert '"result":[' in answer.text, f"no group was made: {answer.text[:100]}"
        return answer
