# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""A MariaDB of an application's own, which listens at a Unix socket in its folder."""

from php import PHPApplication


class MariaDBApplication(PHPApplication):
    debian = ["mariadb-server", "php-cli", "php-cgi", "php-mysql", "php-xml", "php-mbstring"]

    @property
    def socket(self):
        return self.path("maria.sock")

    def serve_mariadb(self, *statements):
        """Starts it with an empty database `farm`, and runs the statements as its administrator."""
        data, user = self.path("mariadb"), ["--user=root"] if self.is_root else []
        self.run("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
            "--skip-test-db", *user)
        server = self.serve(
            "/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", "--skip-networking",
            "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0", *user, name="mariadb", answers=None)
        server.wait_until_it_listens(self.socket)
        self.sql("CREATE DATABASE farm CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", database=None)
        for statement in statements:
            self.sql(statement)

    def sql(self, statements, database="farm"):
        words = ["mariadb", "--no-defaults", f"--socket={self.socket}", "-u", "root"]
        return self.run(*words, *([database] if database else []), text=statements)
