# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application


class Marimo(Application):
    title = "marimo"
    login = "form, password only"
    pypi = ["marimo==0.25.2"]
    fields = ["password"]
    configuration = """
upstreams:
  marimo:
    url: https://marimo.example.com/

challenges:
  - name: marimo
    upstream: marimo
    gateway: form
    credential: marimo
    inject: { Marimo-Server-Token: { value: '{page:/"serverToken": "([^"]+)/}', on: [POST, PUT, PATCH, DELETE] } }
"""
    page = ("/", "<marimo-")
    open_page = ("/health", "healthy")

    def start(self):
        self.file("farm.py", "import marimo\napp = marimo.App()\n")
        self.file("hens.txt", "six")
        self.serve(
            self.python, "-m", "marimo", "edit", "--headless", "--skip-update-check", "--host", "127.0.0.1", "--port", self.port, "--token",
            "--token-password", self.password, self.path("farm.py"), environment={"HOME": self.folder}, answers="/health")

    def end_sessions(self):
        self.restart()

    def write(self, caller):
        caller.post("/api/files/update", document={"path": self.path("hens.txt"), "contents": "seven"})
        answer = caller.post("/api/files/file_details", document={"path": self.path("hens.txt")})
        assert "seven" in answer.text, f"nothing was written: {answer}"
        return answer
