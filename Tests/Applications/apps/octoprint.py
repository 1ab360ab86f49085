# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application


class OctoPrint(Application):
    title = "OctoPrint"
    login = "JSON, with a token against forged requests"
    pypi = ["OctoPrint==1.11.8"]
    configuration = """
upstreams:
  octoprint:
    url: https://octoprint.example.com/

challenges:
  - name: octoprint
    upstream: octoprint
    gateway: none
    credential: octoprint
    detect: { status: 403 }
    login:
      - { url: /, method: GET, extract: { csrf: "cookie:csrf_token_P443" } }
      - url: /api/login
        body: json
        parameters: { user: "{username}", pass: "{password}" }
        headers: { X-CSRF-Token: "{csrf}" }
    inject: { X-CSRF-Token: { value: "{cookie:csrf_token_P443}", on: [POST, PUT, PATCH, DELETE] } }
    prove-at: /api/settings
"""
    page = ("/api/settings", '"appearance"')
    open_page = ("/robots.txt", "Disallow")

    def localized(self, text):
        # The port that callers of the application see is in the cookie's name.
        return text.replace("csrf_token_P443", f"csrf_token_P{self.public_port}")

    def prepare(self):
        words = ["--basedir", self.path("base")]
        self.file("base/config.yaml", "server: { firstRun: false, onlineCheck: { enabled: false }, pluginBlacklist: { enabled: false } }\n"
            "accessControl: { salt: of-the-farm }\nplugins: { _disabled: [tracking, softwareupdate, announcements, discovery] }\n")
        self.run(self.python, "-m", "octoprint", *words, "user", "add", self.username, "--password", self.password, "--admin")

    def start(self):
        words = ["--basedir", self.path("base")]
        self.serve(
            self.python, "-m", "octoprint", "serve", "--iknowwhatimdoing", *words, "--host", "127.0.0.1", "--port", self.port,
            answers="/robots.txt")

    def end_sessions(self):
        self.restart()

    def write(self, caller):
        return caller.post("/api/settings", document={"appearance": {"name": "Hens"}})
