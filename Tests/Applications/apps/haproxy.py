# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application
from web import inputs


class HAProxy(Application):
    title = "HAProxy statistics"
    login = "Basic"
    debian = ["haproxy"]
    quick = True
    configuration = """
upstreams:
  haproxy:
    url: https://haproxy.example.com/

challenges:
  - name: haproxy
    upstream: haproxy
    scheme: basic
    credential: haproxy
"""
    page = ("/stats", "Statistics Report for HAProxy")
    open_page = ("/hello", "hello")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        path = self.file("haproxy.cfg", f"""
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend farm
    bind 127.0.0.1:{self.port}
    stats enable
    stats uri /stats
    stats auth {self.username}:{self.password}
    stats admin if TRUE
    http-request return status 200 content-type text/plain string hello if {{ path /hello }}
    default_backend hens
backend hens
    server berta 127.0.0.1:1
""")
        self.serve("haproxy", "-db", "-f", path, answers="/hello")

    def write(self, caller):
        form = inputs(caller.get("/stats").text, "b")
        answer = caller.post("/stats", form=dict(form, s="berta", action="drain"))
        assert "st=DONE" in answer.fields.get("Location", ""), f"nothing was changed: {answer}"
        return answer
