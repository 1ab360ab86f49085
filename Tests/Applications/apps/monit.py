# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application
from web import inputs


class Monit(Application):
    title = "Monit"
    login = "Basic"
    debian = ["monit"]
    configuration = """
upstreams:
  monit:
    url: https://monit.example.com/

challenges:
  - name: monit
    upstream: monit
    scheme: basic
    credential: monit
"""
    page = ("/", "Monit Service Manager")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        path = self.file("monitrc", f"""set daemon 3600
set idfile {self.path('id')}
set statefile {self.path('state')}
set pidfile {self.path('pid')}
set httpd port {self.port} and use address 127.0.0.1
    allow {self.username}:{self.password}
check program farm with path "/bin/true"
    if status != 0 then alert
""")
        self.serve("monit", "-I", "-c", path)

    def write(self, caller):
        form = inputs(caller.get("/farm").text, "securitytoken")
        assert form.get("securitytoken"), "the page has no security token"
        answer = caller.post("/farm", form={"securitytoken": form["securitytoken"], "action": "unmonitor"})
        return answer
