# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os
import shutil

from application import Application
from web import inputs


class Redmine(Application):
    title = "Redmine"
    login = "form"
    debian = ["redmine", "redmine-sqlite", "ruby-webrick", "bundler"]
    answers = ["redmine redmine/instances/default/dbconfig-install boolean false"]
    username = "admin"
    configuration = """
upstreams:
  redmine:
    url: https://redmine.example.com/

challenges:
  - name: redmine
    upstream: redmine
    gateway: form
    credential: redmine
    prove-at: /my/account
"""
    page = ("/my/account", "admin")
    open_page = ("/robots.txt", "Disallow")

    @property
    def environment(self):
        return {"RAILS_ENV": "production", "REDMINE_INSTANCE": "farm", "RAILS_SERVE_STATIC_FILES": "1"}

    def prepare(self):
        pages = self.path("pages")
        shutil.copytree("/usr/share/redmine", pages, symlinks=False, ignore=shutil.ignore_patterns("instances"))
        for name in ("config", "log", "tmp", "files", "public/plugin_assets"):
            os.makedirs(os.path.join(pages, "instances/farm", name))
        self.file("pages/instances/farm/config/database.yml",
            f"production:\n  adapter: sqlite3\n  database: {self.path('redmine.db')}\n  timeout: 20000\n")
        self.file("pages/instances/farm/config/secret_key.txt", "secret of the farm " * 6)
        # A server is not among the application's own gems.
        with open(f"{pages}/Gemfile", "a") as file:
            file.write("gem 'webrick'\n")
        self.run("bundle", "install", "--local", environment=self.bundled)
        self.run("bundle", "exec", "rake", "-f", f"{pages}/Rakefile", "db:migrate", environment=self.bundled, seconds=200)
        code = (
            f"u = User.find_by_login('admin'); u.password = u.password_confirmation = '{self.password}'; "
            "u.must_change_passwd = false; u.save!")
        self.run("bundle", "exec", f"{pages}/bin/rails", "runner", code, environment=self.bundled, seconds=120)

    @property
    def bundled(self):
        return {**self.environment, "BUNDLE_GEMFILE": self.path("pages/Gemfile"), "PWD": self.path("pages")}

    def start(self):
        self.serve("sh", "-c", f"cd {self.path('pages')} && exec bundle exec bin/rails server -u webrick -b 127.0.0.1 -p {self.port}",
            environment=self.bundled, answers="/login")

    def end_sessions(self):
        code = "Token.where(action: 'session').delete_all"
        self.run("bundle", "exec", self.path("pages/bin/rails"), "runner", code, environment=self.bundled, seconds=120)

    def write(self, caller):
        form = inputs(caller.get("/groups/new").text, "group[name]")
        answer = caller.post("/groups", form={**form, "group[name]": "Farmers"})
        assert "Farmers" in caller.get("/groups").text, f"no group was made: {answer}"
        return answer
