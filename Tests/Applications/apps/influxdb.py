# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import urllib.parse

from application import Application
from web import Caller


class InfluxDB(Application):
    title = "InfluxDB 1.x"
    login = "Basic"
    debian = ["influxdb"]
    configuration = """
upstreams:
  influxdb:
    url: https://influxdb.example.com/

challenges:
  - name: influxdb
    upstream: influxdb
    scheme: basic
    credential: influxdb
"""
    page = ("/query?q=SHOW+DATABASES", "farm")
    open_page = "its only such page is empty"
    not_for = {"ended": "it keeps no session"}

    def start(self):
        path = self.file("influxdb.conf", f"""
reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
  dir = "{self.path('meta')}"
[data]
  dir = "{self.path('data')}"
  wal-dir = "{self.path('wal')}"
[http]
  bind-address = "127.0.0.1:{self.port}"
  auth-enabled = true
""")
        self.serve("influxd", "-config", path, answers="/ping")
        made = f"CREATE USER {self.username} WITH PASSWORD '{self.password}' WITH ALL PRIVILEGES"
        caller = Caller(self.port)
        answer = caller.post("/query", form={"q": made})
        query = urllib.parse.urlencode({"q": "CREATE DATABASE farm", "u": self.username, "p": self.password})
        assert answer.status == 200 and caller.post(f"/query?{query}").status == 200, answer.text

    def write(self, caller):
        answer = caller.send("POST", "/write?db=farm", b"hens count=7\n")
        assert answer.status == 204, answer.text[:100]
        return answer
