# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application


class Datasette(Application):
    title = "Datasette with passwords"
    login = "form"
    pypi = ["datasette==0.65.5", "datasette-auth-passwords==1.1.1"]
    configuration = """
upstreams:
  datasette:
    url: https://datasette.example.com/

challenges:
  - name: datasette
    upstream: datasette
    gateway: form
    credential: datasette
    detect: { status: 403 }
    login: { page: /-/login }
"""
    page = ("/", ">ann<")
    open_page = ("/-/static/app.css", "body")
    not_for = {"write": "its core is for readers"}

    def start(self):
        code = "import sys; from datasette_auth_passwords.utils import hash_password; print(hash_password(sys.argv[1], iterations=9))"
        digest = self.run(self.python, "-c", code, self.password).strip().split("\n")[-1]
        settings = self.file("metadata.json", f"""{{"allow": {{"id": "ann"}}, "plugins": {{"datasette-auth-passwords": {{
"ann_password_hash": "{digest}", "actors": {{"ann": {{"id": "ann"}}}}}}}}}}""")
        # Its secret is made anew at each start.
        self.serve(
            self.python, "-m", "datasette", "serve", "--memory", "-h", "127.0.0.1", "-p", self.port, "-m", settings, answers="/-/login")

    def end_sessions(self):
        self.restart()
