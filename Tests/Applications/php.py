# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Applications in PHP, by PHP's own server with four processes, and their sessions in a folder of the application's."""

import glob
import os

from application import Application


class PHPApplication(Application):
    # Where the package keeps its pages.
    root = ""

    def php(self, *words, text=None):
        return self.run("php", "-d", "display_errors=stderr", *words, text=text)

    def bcrypt(self, password):
        printed = self.php("-r", "echo password_hash($argv[1], PASSWORD_BCRYPT, ['cost' => 4]);", password)
        # Below what PHP may have to say.
        return printed.split("\n")[-1]

    def serve_php(self, prelude="", answers="/", environment=None, options=()):
        """`prelude`: PHP that runs before each page."""
        sessions = self.path("sessions")
        os.makedirs(sessions, exist_ok=True)
        path = self.file("prelude.php", f"<?php\n{prelude}\n")
        self.serve(
            "php", "-d", f"session.save_path={sessions}", "-d", "display_errors=0", "-d", f"auto_prepend_file={path}", *options, "-S",
            f"127.0.0.1:{self.port}", "-t", self.root, answers=answers,
            environment={"PHP_CLI_SERVER_WORKERS": "4", **(environment or {})})

    def forget_sessions(self):
        for path in glob.glob(os.path.join(self.path("sessions"), "sess_*")):
            os.unlink(path)
