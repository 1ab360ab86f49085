# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from apache import ApacheApplication


class Subversion(ApacheApplication):
    title = "Subversion behind Apache"
    login = "Basic"
    debian = ["subversion", "libapache2-mod-svn", *ApacheApplication.debian]
    modules = ["auth_basic", "dav", "dav_svn"]
    configuration = """
upstreams:
  subversion:
    url: https://subversion.example.com/

challenges:
  - name: subversion
    upstream: subversion
    scheme: basic
    credential: subversion
"""
    page = ("/svn/", "Revision")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        self.run("svnadmin", "create", self.path("repository"))
        self.give_to_apache("repository")
        self.serve_apache(f"""
<Location /svn>
DAV svn
SVNPath {self.path('repository')}
AuthType Basic
AuthName farm
AuthUserFile {self.basic_file()}
Require valid-user
</Location>
""", answers="/svn/")

    def write(self, caller):
        self.run("svn", "mkdir", "--non-interactive", "-m", "A house", f"http://127.0.0.1:{caller.port}/svn/hens")
        answer = caller.get("/svn/")
        assert "hens" in answer.text, f"nothing was committed: {answer}"
        return answer
