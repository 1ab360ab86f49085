# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from application import Application

SETTINGS = """
from jupyterhub.proxy import Proxy
class NoProxy(Proxy):
    should_start = False
    async def add_route(self, routespec, target, data): pass
    async def delete_route(self, routespec): pass
    async def get_all_routes(self):
        return {{"/": {{"routespec": "/", "target": "http://127.0.0.1:{port}", "data": {{"hub": True}}}}}}
    async def check_routes(self, *arguments, **named): pass
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.bind_url = "http://127.0.0.1:1/"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.redirect_to_server = False
c.DummyAuthenticator.password = "{password}"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {{"{username}"}}
"""


class JupyterHub(Application):
    title = "JupyterHub"
    login = "form"
    pypi = ["jupyterhub==6.1.1"]
    configuration = """
upstreams:
  jupyterhub:
    url: https://jupyterhub.example.com/

challenges:
  - name: jupyterhub
    upstream: jupyterhub
    gateway: form
    credential: jupyterhub
    inject: { X-XSRFToken: { value: "{cookie:_xsrf}", on: [POST, PUT, PATCH, DELETE] } }
    prove-at: /hub/home
"""
    page = ("/hub/home", "ann")
    open_page = ("/hub/api/", "version")

    def start(self):
        settings = self.file("jupyterhub_config.py", SETTINGS.format(port=self.port, **vars(type(self)) | {
            "username": self.username, "password": self.password}))
        self.serve(self.python, "-m", "jupyterhub", "-f", settings, answers="/hub/health")

    def end_sessions(self):
        os.unlink(self.path("jupyterhub_cookie_secret"))
        self.restart()

    def write(self, caller):
        return caller.post("/hub/api/users", document={"usernames": ["bert"]})
