# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Applications behind Apache, which asks for the password."""

import os

from application import Application

MODULES = "/usr/lib/apache2/modules"
BASE = """
ServerRoot {folder}
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
ServerName localhost
Listen 127.0.0.1:{port}
ErrorLog {folder}/error.log
TypesConfig /etc/mime.types
{modules}
{user}
StartServers 1
"""


class ApacheApplication(Application):
    debian = ["apache2-bin", "apache2-utils", "media-types"]
    # Besides those of every server.
    modules = []

    def serve_apache(self, rules, answers="/"):
        names = ["mpm_event", "authn_core", "authz_core", "authz_user", "authn_file", "dir", "alias", "mime", "env", *self.modules]
        loaded = "\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in names)
        user = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
        text = BASE.format(folder=self.folder, port=self.port, modules=loaded, user=user)
        os.chmod(self.folder, 0o755)
        path = self.file("apache.conf", text + rules)
        self.serve("/usr/sbin/apache2", "-f", path, "-D", "FOREGROUND", answers=answers)

    def give_to_apache(self, name):
        """What the server's user must be able to write."""
        if os.geteuid() == 0:
            self.run("chown", "-R", "www-data:www-data", self.path(name))

    def digest_file(self, realm):
        """A file of passwords for Digest."""
        import hashlib
        digest = hashlib.md5(f"{self.username}:{realm}:{self.password}".encode()).hexdigest()
        return self.file("users.digest", f"{self.username}:{realm}:{digest}\n", 0o644)

    def basic_file(self):
        """A file of passwords for Basic."""
        self.run("htpasswd", "-cbB", "-C", "4", self.path("users.basic"), self.username, self.password)
        os.chmod(self.path("users.basic"), 0o644)
        return self.path("users.basic")
