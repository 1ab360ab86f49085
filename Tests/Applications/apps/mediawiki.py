# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import sqlite3

from php import PHPApplication

SETTINGS = """
$wgGroupPermissions['*']['read'] = false;
$wgWhitelistRead = ['Public'];
$wgMainCacheType = CACHE_DB;
$wgSessionCacheType = CACHE_DB;
$wgJobRunRate = 0;
"""


class MediaWiki(PHPApplication):
    title = "MediaWiki, private"
    login = "form"
    debian = ["mediawiki", "php-cli", "php-cgi", "php-sqlite3"]
    root = "/usr/share/mediawiki"
    configuration = """
upstreams:
  mediawiki:
    url: https://mediawiki.example.com/

challenges:
  - name: mediawiki
    upstream: mediawiki
    gateway: form
    credential: mediawiki
    detect: { body-contains: "<title>Login required" }
    login: { page: /index.php?title=Special:UserLogin }
    prove-at: /index.php?title=Main_Page
"""
    page = ("/index.php?title=Main_Page", ">Ann<")
    open_page = ("/index.php?title=Public", "A public page")

    def start(self):
        self.php(
            f"{self.root}/maintenance/install.php", "--confpath", self.folder, "--dbtype", "sqlite", "--dbpath", self.folder, "--dbname",
            "wiki", "--scriptpath", "", "--server", f"http://127.0.0.1:{self.public_port}", "--pass", "of-the-administrator-1", "Farm",
            "Root")
        with open(self.path("LocalSettings.php"), "a") as file:
            file.write(SETTINGS)
        environment = {"MW_CONFIG_FILE": self.path("LocalSettings.php")}
        maintenance = f"{self.root}/maintenance"
        self.run("php", f"{maintenance}/createAndPromote.php", "--force", self.username, self.password, environment=environment)
        self.run("php", f"{maintenance}/edit.php", "-u", "Root", "Public", text="A public page.", environment=environment)
        self.serve_php(answers="/index.php?title=Special:UserLogin", environment=environment)

    def end_sessions(self):
        with sqlite3.connect(self.path("wikicache.sqlite"), timeout=20) as database:
            database.execute("DELETE FROM objectcache")

    def write(self, caller):
        token = caller.get("/api.php?action=query&meta=tokens&format=json").json["query"]["tokens"]["csrftoken"]
        answer = caller.post("/api.php", form={
            "action": "edit", "format": "json", "title": "Farm", "text": "Of the farm.", "token": token})
        assert "Of the farm." in caller.get("/index.php?title=Farm").text, f"nothing was written: {answer.text[:100]}"
        return answer
