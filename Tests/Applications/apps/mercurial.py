# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from apache import ApacheApplication


class Mercurial(ApacheApplication):
    title = "Mercurial hgweb behind Apache"
    login = "Digest"
    debian = ["mercurial", *ApacheApplication.debian]
    modules = ["auth_digest", "cgid"]
    configuration = """
upstreams:
  mercurial:
    url: https://mercurial.example.com/

challenges:
  - name: mercurial
    upstream: mercurial
    scheme: digest
    credential: mercurial
"""
    page = ("/hg/shortlog", "mercurial")
    open_page = ("/static/style.css", "")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        self.run("hg", "init", self.path("repository"))
        self.file("repository/.hg/hgrc", "[web]\npush_ssl = false\nallow_push = *\n", 0o644)
        self.give_to_apache("repository")
        self.file("hgweb.cgi", f"""#!/usr/bin/python3
from mercurial import demandimport; demandimport.enable()
from mercurial.hgweb import hgweb, wsgicgi
wsgicgi.launch(hgweb(b"{self.path('repository')}"))
""", 0o755)
        self.file("static/style.css", "body {}\n", 0o644)
        self.folder_for_all("static")
        self.serve_apache(f"""
ScriptSock {self.path('cgisock')}
ScriptAlias /hg {self.path('hgweb.cgi')}
Alias /static {self.path('static')}
<Location /hg>
AuthType Digest
AuthName farm
AuthUserFile {self.digest_file('farm')}
Require valid-user
</Location>
""", answers="/static/style.css")

    def write(self, caller):
        clone = self.path("clone")
        self.run("hg", "clone", self.path("repository"), clone)
        self.file("clone/hens", "7\n")
        self.run("hg", "--cwd", clone, "commit", "-A", "-u", "ann", "-m", "Count the hens")
        self.run("hg", "--cwd", clone, "push", f"http://127.0.0.1:{caller.port}/hg")
        answer = caller.get("/hg/shortlog")
        assert "Count the hens" in answer.text, f"nothing was pushed: {answer}"
        return answer
