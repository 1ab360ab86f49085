# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from application import Application

SETTINGS = """
from buildbot.plugins import schedulers, util, worker
c = BuildmasterConfig = {{}}
c['workers'] = [worker.Worker('hen', 'of-the-hen')]
c['protocols'] = {{'pb': {{'port': 'tcp:0:interface=127.0.0.1'}}}}
c['schedulers'] = [schedulers.ForceScheduler(name='force', builderNames=['eggs'])]
c['builders'] = [util.BuilderConfig(name='eggs', workernames=['hen'], factory=util.BuildFactory())]
c['buildbotNetUsageData'] = None
c['db'] = {{'db_url': 'sqlite:///farm.sqlite'}}
c['www'] = dict(
    port='tcp:{port}:interface=127.0.0.1', auth=util.UserPasswordAuth({{'{username}': '{password}'}}),
    authz=util.Authz(allowRules=[util.AnyEndpointMatcher(role='admins')],
                     roleMatchers=[util.RolesFromUsername(roles=['admins'], usernames=['{username}'])]))
"""


class Buildbot(Application):
    title = "Buildbot"
    login = "Basic at one address, then a cookie"
    pypi = ["buildbot[bundle]==4.3.0", "setuptools<80"]
    configuration = """
upstreams:
  buildbot:
    url: https://buildbot.example.com/

challenges:
  - name: buildbot
    upstream: buildbot
    gateway: none
    credential: buildbot
    detect: { status: 403 }
    login:
      url: /auth/login
      method: GET
      headers: { Authorization: "Basic {base64:username:password}" }
    prove-at: /api/v2/masters
"""
    page = ("/api/v2/masters", '"masters"')
    open_page = ("/", "Buildbot")

    def prepare(self):
        program = os.path.join(os.path.dirname(self.python), "buildbot")
        self.run(program, "create-master", self.path("master"))
        self.file("master/master.cfg", SETTINGS.format(port=self.port, username=self.username, password=self.password))
        self.run(program, "upgrade-master", self.path("master"))

    def start(self):
        program = os.path.join(os.path.dirname(self.python), "buildbot")
        self.serve(program, "start", "--nodaemon", self.path("master"))

    def end_sessions(self):
        self.run("sqlite3", self.path("master/farm.sqlite"), "DELETE FROM object_state WHERE name = 'session_secret'")
        self.restart()

    def write(self, caller):
        build = {"jsonrpc": "2.0", "method": "force", "params": {"builderid": "1", "reason": "Of the farm."}, "id": 1}
        answer = caller.post("/api/v2/forceschedulers/force", document=build)
        assert "Of the farm." in caller.get("/api/v2/buildsets").text, f"nothing was begun: {answer.text[:100]}"
        return answer
