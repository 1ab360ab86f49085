# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os
import sqlite3

import processes
from php import PHPApplication
from web import inputs

IMAP = """base_dir = {folder}/dovecot
log_path = {folder}/dovecot.log
protocols = imap
ssl = no
disable_plaintext_auth = no
auth_failure_delay = 0
service imap-login {{
  inet_listener imap {{
    address = 127.0.0.1
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=www-data gid=www-data home={folder}/mail/%u
}}
mail_location = maildir:~/Maildir
first_valid_uid = 1
"""


class Roundcube(PHPApplication):
    title = "Roundcube"
    login = "form"
    debian = ["roundcube-core", "roundcube-sqlite3", "dovecot-imapd", "php-cli", "php-cgi", "php-sqlite3"]
    answers = [
        "roundcube-core roundcube/dbconfig-install boolean false", "roundcube-core roundcube/database-type select sqlite3",
        "roundcube-core roundcube/reconfigure-webserver multiselect"]
    root = "/usr/share/roundcube"
    configuration = """
upstreams:
  roundcube:
    url: https://roundcube.example.com/

challenges:
  - name: roundcube
    upstream: roundcube
    gateway: form
    credential: roundcube
"""
    page = ("/?_task=settings", "Preferences")
    open_page = ("/program/resources/blank.tiff", "")

    def start(self):
        port = processes.free_port()
        self.folder_for_all("mail")
        settings = self.file("dovecot.conf", IMAP.format(folder=self.folder, port=port, password=self.password))
        imap = self.serve("/usr/sbin/dovecot", "-F", "-c", settings, name="dovecot", answers=None)
        imap.wait_until_it_listens(port)
        with open("/usr/share/dbconfig-common/data/roundcube/install/sqlite3") as file:
            sql = file.read()
        with sqlite3.connect(self.path("mail.db")) as database:
            database.executescript(sql)
        os.makedirs(self.path("tmp"))
        self.run("cp", "-rL", "/etc/roundcube", self.path("config"))
        self.file("config/config.inc.php", f"""<?php
$config['db_dsnw'] = 'sqlite:///{self.path('mail.db')}?mode=0600';
$config['imap_host'] = '127.0.0.1:{port}';
$config['des_key'] = 'of-the-farm-of-the-farm-';
$config['log_dir'] = '{self.path('tmp')}';
$config['temp_dir'] = '{self.path('tmp')}';
$config['language'] = 'en_US';
$config['plugins'] = [];
$config['skin'] = 'elastic';
$config['enable_installer'] = false;
""")
        self.serve_php(environment={"ROUNDCUBE_CONFIG_DIR": self.path("config")})

    def end_sessions(self):
        with sqlite3.connect(self.path("mail.db"), timeout=20) as database:
            database.execute("DELETE FROM session")

    def write(self, caller):
        form = inputs(caller.get("/?_task=settings&_action=add-identity&_framed=1").text, "_token")
        fields = dict(form, _name="Ann of the farm", _email="ann@example.com", _framed="1", _task="settings", _action="save-identity")
        answer = caller.post("/?_task=settings&_action=save-identity", form=fields)
        with sqlite3.connect(self.path("mail.db"), timeout=20) as database:
            names = [row[0] for row in database.execute("SELECT name FROM identities")]
        assert "Ann of the farm" in names, f"no identity was saved: {answer}"
        return answer
