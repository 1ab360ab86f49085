# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application


class Supervisor(Application):
    title = "Supervisor"
    login = "Basic"
    debian = ["supervisor"]
    configuration = """
upstreams:
  supervisor:
    url: https://supervisor.example.com/

challenges:
  - name: supervisor
    upstream: supervisor
    scheme: basic
    credential: supervisor
"""
    page = ("/", "Supervisor Status")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        path = self.file("supervisord.conf", f"""[supervisord]
nodaemon=true
user={'root' if self.is_root else ''}
[inet_http_server]
port=127.0.0.1:{self.port}
username={self.username}
password={self.password}
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
""")
        self.serve("supervisord", "-c", path)

    def write(self, caller):
        call = "<?xml version='1.0'?><methodCall><methodName>supervisor.clearLog</methodName><params/></methodCall>"
        answer = caller.send("POST", "/RPC2", call.encode(), {"Content-Type": "text/xml"})
        assert "<boolean>1</boolean>" in answer.text, answer.text[:100]
        return answer
