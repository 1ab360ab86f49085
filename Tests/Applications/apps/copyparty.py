# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from application import Application


class Copyparty(Application):
    title = "copyparty"
    login = "Basic, name ignored"
    pypi = ["copyparty==1.20.26"]
    configuration = """
upstreams:
  copyparty:
    url: https://copyparty.example.com/

challenges:
  - name: copyparty
    upstream: copyparty
    scheme: basic
    credential: copyparty
"""
    page = ("/private/hens.txt", "Berta")
    open_page = ("/open/hello.txt", "hello")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        self.file("private/hens.txt", "Berta\n")
        self.file("open/hello.txt", "hello\n")
        self.serve(
            os.path.join(os.path.dirname(self.python), "copyparty"), "-i", "127.0.0.1", "-p", self.port, "-a", f"ann:{self.password}", "-v",
            f"{self.path('private')}:private:rwmd,ann", "-v", f"{self.path('open')}:open:r", "--no-crt", "-q", answers="/open/hello.txt")

    def write(self, caller):
        answer = caller.send("PUT", "/private/eggs.txt", b"seven\n")
        assert "seven" in caller.get("/private/eggs.txt").text, f"nothing was written: {answer}"
        return answer
