# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from mariadb import MariaDBApplication
from web import inputs

SETTINGS = """<?php
$database_type = 'mysql'; $database_default = 'farm'; $database_hostname = 'localhost'; $database_username = 'root';
$database_password = ''; $database_port = '3306'; $database_retries = 5; $database_ssl = false; $database_ssl_key = '';
$database_ssl_cert = ''; $database_ssl_ca = ''; $database_persist = false; $poller_id = 1; $url_path = '/'; $cacti_session_name = 'Cacti';
$cacti_db_session = false; $disable_log_rotation = true; $proxy_headers = null; $i18n_handler = null; $i18n_force_language = null;
"""


class Cacti(MariaDBApplication):
    title = "Cacti"
    login = "form"
    debian = ["cacti", *MariaDBApplication.debian]
    answers = ["cacti cacti/dbconfig-install boolean false", "cacti cacti/webserver select None"]
    configuration = """
upstreams:
  cacti:
    url: https://cacti.example.com/

challenges:
  - name: cacti
    upstream: cacti
    gateway: none
    credential: cacti
    detect: { form-fields: [login_username, login_password] }
    login:
      url: form
      parameters: { login_username: "{username}", login_password: "{password}" }
      fields: hidden
    prove-at: /host.php
"""
    username = "admin"
    page = ("/host.php", "Devices")
    open_page = ("/images/favicon.ico", "")

    def start(self):
        self.serve_mariadb()
        self.root = self.path("pages")
        self.run("cp", "-rL", "/usr/share/cacti/site", self.root)
        with open("/usr/share/cacti/conf_templates/cacti.sql") as file:
            self.sql(file.read())
        self.sql(f"""UPDATE version SET cacti = '1.2.24';
UPDATE user_auth SET password = '{self.bcrypt(self.password)}', must_change_password = '' WHERE username = 'admin'""")
        self.file("pages/include/config.php", SETTINGS)
        self.serve_php(options=["-d", f"pdo_mysql.default_socket={self.socket}"], answers="/index.php")

    def end_sessions(self):
        self.forget_sessions()

    def write(self, caller):
        form = inputs(caller.get("/sites.php?action=edit").text, "name")
        answer = caller.post("/sites.php?header=false", form=dict(form, name="Hen house", action="save", save_component_site="1"))
        assert "Hen house" in self.sql("SELECT name FROM sites"), f"no site was added: {answer}"
        return answer
