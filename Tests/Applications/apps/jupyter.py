# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from application import Application


class JupyterServer(Application):
    title = "Jupyter Server"
    login = "form, password only"
    pypi = ["jupyter-server==2.21.1"]
    fields = ["password"]
    configuration = """
upstreams:
  jupyter:
    url: https://jupyter.example.com/

challenges:
  - name: jupyter
    upstream: jupyter
    gateway: form
    credential: jupyter
    detect: { status: 403, content-type: application/json }
    login: { page: /login }
    inject: { X-XSRFToken: { value: "{cookie:_xsrf}", on: [POST, PUT, PATCH, DELETE] } }
    prove-at: /api/me
"""
    page = ("/api/contents", '"directory"')
    open_page = ("/api", "version")

    def start(self):
        code = "import sys; from jupyter_server.auth import passwd; print(passwd(sys.argv[1], 'sha1'))"
        digest = self.run(self.python, "-c", code, self.password).strip()
        os.makedirs(self.path("files"), exist_ok=True)
        environment = {f"JUPYTER_{name}_DIR": self.path(name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
        self.serve(
            self.python, "-m", "jupyter_server", "--ip=127.0.0.1", f"--port={self.port}", "--allow-root", "--no-browser",
            f"--ServerApp.root_dir={self.path('files')}", f"--PasswordIdentityProvider.hashed_password={digest}",
            environment=environment, answers="/api")

    def end_sessions(self):
        os.unlink(self.path("runtime/jupyter_cookie_secret"))
        self.restart()

    def write(self, caller):
        return caller.post("/api/contents", document={"type": "file", "ext": ".txt"})
