# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from application import Application


class Zope(Application):
    title = "Zope"
    login = "Basic"
    pypi = ["Zope[wsgi]==6.3"]
    configuration = """
upstreams:
  zope:
    url: https://zope.example.com/

challenges:
  - name: zope
    upstream: zope
    scheme: basic
    credential: zope
"""
    page = ("/manage_main", "acl_users")
    open_page = ("/", "Zope")
    not_for = {"ended": "it keeps no session"}

    def prepare(self):
        program = os.path.join(os.path.dirname(self.python), "mkwsgiinstance")
        self.run(program, "-d", self.path("instance"), "-u", f"{self.username}:{self.password}")
        path = self.path("instance/etc/zope.ini")
        with open(path) as file:
            text = file.read()
        self.file("instance/etc/zope.ini", text.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}").replace("= 8080", f"= {self.port}"))

    def start(self):
        self.serve(os.path.join(os.path.dirname(self.python), "runwsgi"), self.path("instance/etc/zope.ini"))

    def write(self, caller):
        answer = caller.post("/manage_addFolder", form={"id": "hens", "title": "Hens"})
        assert "hens" in caller.get("/manage_main").text, f"no folder was made: {answer}"
        return answer
