# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import hashlib

from application import Application


class Lighttpd(Application):
    title = "lighttpd with WebDAV"
    login = "Digest, SHA-256"
    documented = True
    debian = ["lighttpd", "lighttpd-mod-webdav"]
    quick = True
    configuration = """
upstreams:
  lighttpd:
    url: https://lighttpd.example.com/

challenges:
  - name: lighttpd
    upstream: lighttpd
    scheme: digest
    credential: lighttpd
"""
    page = ("/private/hens.txt", "Berta")
    open_page = ("/hello.txt", "hello")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        digest = hashlib.sha256(f"{self.username}:farm:{self.password}".encode()).hexdigest()
        users = self.file("users", f"{self.username}:farm:{digest}\n")
        self.file("pages/hello.txt", "hello\n")
        self.file("pages/private/hens.txt", "Berta\n")
        path = self.file("lighttpd.conf", f"""
server.modules = ("mod_auth", "mod_authn_file", "mod_webdav")
server.document-root = "{self.path('pages')}"
server.bind = "127.0.0.1"
server.port = {self.port}
mimetype.assign = (".txt" => "text/plain")
auth.backend = "htdigest"
auth.backend.htdigest.userfile = "{users}"
$HTTP["url"] =~ "^/private/" {{
    webdav.activate = "enable"
    auth.require = ("" => ("method" => "digest", "algorithm" => "SHA-256", "realm" => "farm", "require" => "valid-user"))
}}
""")
        self.serve("lighttpd", "-D", "-f", path, answers="/hello.txt")

    def write(self, caller):
        answer = caller.send("PUT", "/private/eggs.txt", b"seven\n")
        assert "seven" in caller.get("/private/eggs.txt").text, f"nothing was written: {answer}"
        return answer
