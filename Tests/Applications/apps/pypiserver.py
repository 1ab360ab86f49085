# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from application import Application


class PyPIServer(Application):
    title = "pypiserver"
    login = "Basic"
    debian = ["apache2-utils"]
    pypi = ["pypiserver[passlib]==2.4.2"]
    configuration = """
upstreams:
  pypiserver:
    url: https://pypiserver.example.com/

challenges:
  - name: pypiserver
    upstream: pypiserver
    gateway: none
    credential: pypiserver
    detect: { status: 401 }
    login:
      url: /simple/
      method: GET
      headers: { Authorization: "Basic {base64:username:password}" }
    success: { status: 200 }
    inject: { Authorization: "Basic {base64:username:password}" }
"""
    page = ("/simple/", "Simple Index")
    open_page = ("/", "pypiserver")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        self.run("htpasswd", "-cbm", self.path("users"), self.username, self.password)
        os.makedirs(self.path("packages"), exist_ok=True)
        self.serve(
            self.python, "-m", "pypiserver", "run", "-i", "127.0.0.1", "-p", self.port, "-P", self.path("users"), "-a",
            "update,download,list", "--disable-fallback", self.path("packages"))

    def write(self, caller):
        edge = "edge-of-the-farm"
        parts = [
            f'--{edge}\r\nContent-Disposition: form-data; name=":action"\r\n\r\nfile_upload\r\n',
            f'--{edge}\r\nContent-Disposition: form-data; name="content"; filename="hens-1.0.tar.gz"\r\n\r\nhens\r\n--{edge}--\r\n']
        answer = caller.send("POST", "/", "".join(parts).encode(), {"Content-Type": f"multipart/form-data; boundary={edge}"})
        assert "hens" in caller.get("/simple/").text, f"nothing was uploaded: {answer}"
        return answer
