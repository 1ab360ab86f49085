# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import shutil

from apache import ApacheApplication


class Gitweb(ApacheApplication):
    title = "Gitweb behind Apache's form"
    login = "form of mod_auth_form"
    debian = ["gitweb", "git", *ApacheApplication.debian]
    modules = ["auth_form", "session", "session_cookie", "session_crypto", "request", "cgid"]
    configuration = """
upstreams:
  gitweb:
    url: https://gitweb.example.com/

challenges:
  - name: gitweb
    upstream: gitweb
    gateway: form
    credential: gitweb
"""
    page = ("/gitweb/?p=hens.git;a=summary", "farm of Ann")
    open_page = ("/static/style.css", "body")
    not_for = {"write": "its pages of users write nothing"}

    def start(self):
        self.folder_for_all("repositories")
        self.run("git", "init", "--bare", self.path("repositories/hens.git"))
        self.file("repositories/hens.git/description", "The farm of Ann\n", 0o644)
        self.give_to_apache("repositories")
        self.file("gitweb.conf", f"$projectroot = '{self.path('repositories')}';\n", 0o644)
        self.file("static/style.css", "body {}\n", 0o644)
        self.file("static/login.html", """<html><body><form method="post" action="/dologin">
<input name="httpd_username"><input type="password" name="httpd_password">
<input type="submit" name="login" value="Login"></form></body></html>
""", 0o644)
        self.folder_for_all("static")
        self.serve_with("first-secret-of-the-farm")

    def serve_with(self, secret):
        self.serve_apache(f"""
ScriptSock {self.path('cgisock')}
ScriptAlias /gitweb {shutil.which('gitweb.cgi') or '/usr/share/gitweb/gitweb.cgi'}
SetEnv GITWEB_CONFIG {self.path('gitweb.conf')}
Alias /static {self.path('static')}
<Location /gitweb>
AuthType form
AuthFormProvider file
AuthUserFile {self.basic_file()}
AuthName farm
AuthFormLoginRequiredLocation /static/login.html
Session On
SessionCookieName session path=/
SessionCryptoPassphrase {secret}
Require valid-user
</Location>
<Location /dologin>
SetHandler form-login-handler
AuthFormLoginRequiredLocation /static/login.html
AuthFormLoginSuccessLocation /gitweb/
AuthFormProvider file
AuthUserFile {self.path('users.basic')}
AuthType form
AuthName farm
Session On
SessionCookieName session path=/
SessionCryptoPassphrase {secret}
Require all granted
</Location>
""", answers="/static/style.css")

    def end_sessions(self):
        # Its cookies are encrypted by the secret.
        self.stop()
        self.serve_with("second-secret-of-the-farm")
