# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application
from web import inputs

PROGRAM = """
import os, sys
from flask import Flask
from flask_appbuilder import AppBuilder
from flask_appbuilder.utils.legacy import get_sqla_class
from flask_wtf.csrf import CSRFProtect

app = Flask("farm")
app.config.update(
    SECRET_KEY=os.environ["FARM_SECRET"], SQLALCHEMY_DATABASE_URI="sqlite:///" + os.path.abspath("farm.db"), AUTH_TYPE=1,
    WTF_CSRF_ENABLED=True, RATELIMIT_ENABLED=False)
CSRFProtect(app)
database = get_sqla_class()(app)
with app.app_context():
    builder = AppBuilder(app, database.session)
    manager = builder.sm
    if not manager.find_user("ann"):
        manager.add_user("ann", "Ann", "Farmer", "ann@example.com", manager.find_role("Admin"), os.environ["FARM_PASSWORD"])
app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
"""


class AppBuilder(Application):
    title = "Flask-AppBuilder"
    login = "form"
    pypi = ["flask-appbuilder==5.3.0", "setuptools<80"]
    configuration = """
upstreams:
  appbuilder:
    url: https://appbuilder.example.com/

challenges:
  - name: appbuilder
    upstream: appbuilder
    gateway: form
    credential: appbuilder
    prove-at: /users/list/
"""
    page = ("/users/list/", "ann@example.com")
    open_page = ("/", "F.A.B.")

    def prepare(self):
        self.file("farm.py", PROGRAM)

    def serve_with(self, secret):
        self.serve(self.python, "farm.py", self.port, environment={"FARM_SECRET": secret, "FARM_PASSWORD": self.password})

    def start(self):
        self.serve_with("first-secret-of-the-farm")

    def end_sessions(self):
        # Its cookies are signed by the secret.
        self.stop()
        self.serve_with("second-secret-of-the-farm")

    def write(self, caller):
        form = inputs(caller.get("/roles/add").text, "name")
        answer = caller.post("/roles/add", form=dict(form, name="Farmers"))
        assert "Farmers" in caller.get("/roles/list/").text, f"no role was added: {answer}"
        return answer
