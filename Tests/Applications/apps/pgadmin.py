# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import glob
import os

from application import Application


class PgAdmin(Application):
    title = "pgAdmin 4"
    login = "form"
    pypi = ["pgadmin4==9.18"]
    username = "ann@example.com"
    configuration = """
upstreams:
  pgadmin:
    url: https://pgadmin.example.com/

challenges:
  - name: pgadmin
    upstream: pgadmin
    gateway: none
    credential: pgadmin
    detect: [{ status: 302, redirect-to: /login }, { status: 401 }]
    login:
      - { url: /login, method: GET, extract: { csrf: 'page:/csrfToken": "([^"]+)/' } }
      - url: /authenticate/login
        parameters: { email: "{username}", password: "{password}", csrf_token: "{csrf}" }
    inject: { X-pgA-CSRFToken: { value: "{csrf}", on: [POST, PUT, PATCH, DELETE] } }
    prove-at: /browser/
"""
    page = ("/browser/", "pgAdmin 4")
    # It binds a session to the User-Agent of its login, and ends it under a caller's: that is found out at the second one.
    burst_logins = 2
    open_page = ("/misc/ping", "PING")

    def start(self):
        packages = glob.glob(os.path.join(os.path.dirname(self.python), "../lib/python3*/site-packages/pgadmin4"))[0]
        settings = f"""
SERVER_MODE = True
DATA_DIR = {self.folder!r}
LOG_FILE = {self.path('pgadmin.log')!r}
SQLITE_PATH = {self.path('pgadmin.db')!r}
SESSION_DB_PATH = {self.path('sessions')!r}
STORAGE_DIR = {self.path('storage')!r}
AZURE_CREDENTIAL_CACHE_DIR = {self.path('azure')!r}
DEFAULT_SERVER = '127.0.0.1'
DEFAULT_SERVER_PORT = {self.port}
UPGRADE_CHECK_ENABLED = False
MASTER_PASSWORD_REQUIRED = False
"""
        self.file("config_system.py", settings)
        environment = {"PYTHONPATH": self.folder, "PGADMIN_SETUP_EMAIL": self.username, "PGADMIN_SETUP_PASSWORD": self.password}
        with open(os.path.join(packages, "config_local.py"), "w") as file:
            file.write("import os\nexec(open(os.environ['FARM_SETTINGS']).read())\n")
        environment["FARM_SETTINGS"] = self.path("config_system.py")
        self.serve(self.python, os.path.join(packages, "pgAdmin4.py"), environment=environment, answers="/misc/ping")

    def end_sessions(self):
        # It also keeps them in memory.
        self.run("find", self.path("sessions"), "-type", "f", "-delete")
        self.restart()

    def write(self, caller):
        answer = caller.post("/browser/server_group/obj/", document={"name": "Hens"})
        return answer
