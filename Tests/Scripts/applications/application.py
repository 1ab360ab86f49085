# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""
The common parts of the scripts in this folder. Each runs one real web application on 127.0.0.1:PORT, with all its files in a folder of
the test. The user is ann with the password demo; the application has the pages that make a login hard.

Prints `ready`, then `request METHOD TARGET STATUS` after each request was answered, and `login NAME` for each password that the
application received. `GET /-test/expire` ends all sessions at the server.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request

USER, PASSWORD = "ann", "demo"
HERE = os.path.dirname(os.path.abspath(__file__))
# The folder of the packages that `install` gets from PyPI.
PACKAGES = os.path.join(HERE, "../../../.build/applications/python")


def log(*words):
    print(*words, flush=True)


def arguments():
    """The port, and the folder, which is made."""
    os.makedirs(sys.argv[2], exist_ok=True)
    return int(sys.argv[1]), sys.argv[2]


def use_packages():
    """Lets Python find what comes from PyPI."""
    sys.path.insert(0, PACKAGES)


class PHP:
    """PHP's own server: four processes, and a router that logs the logins and serves the test's commands."""

    # [Mon Nov 23 03:00:00 2026] 127.0.0.1:40000 [200]: GET /index.php
    LINE = re.compile(r"\[[^\]]*\] \S+ \[(\d+)\]: (\S+) (\S+)")

    def __init__(self, port, root, folder, prelude, name_field, login_page):
        """`prelude`: PHP before each page, with `forget_sessions`; `name_field`: the field of a login's form that has the user's name."""
        self.port, self.root, self.folder, self.login_page = port, root, folder, login_page
        self.lock, self.is_warm = threading.Lock(), False
        sessions = os.path.join(folder, "sessions")
        os.makedirs(sessions, exist_ok=True)
        self.prelude = os.path.join(folder, "prelude.php")
        with open(self.prelude, "w") as file:
            file.write(f"<?php\n{prelude}\n")
        self.router = os.path.join(folder, "router.php")
        with open(self.router, "w") as file:
            file.write(ROUTER.format(sessions=sessions, prelude=self.prelude, name_field=name_field))
        self.options = ["-d", f"session.save_path={sessions}", "-d", "display_errors=0", "-d", "opcache.enable_cli=1"]

    def run(self):
        """Serves until SIGTERM."""
        environment = dict(os.environ, PHP_CLI_SERVER_WORKERS="4")
        child = subprocess.Popen(
            ["php", *self.options, "-d", f"auto_prepend_file={self.prelude}", "-S", f"127.0.0.1:{self.port}", "-t",
             self.root, self.router], stderr=subprocess.PIPE, text=True, env=environment, cwd=self.folder,
            start_new_session=True)
        signal.signal(signal.SIGTERM, lambda *_: (os.killpg(child.pid, signal.SIGKILL), os._exit(0)))
        is_ready = False
        for line in child.stderr:
            if "started" in line and not is_ready:
                # Compiled now, in time that no test waits for.
                threading.Thread(target=self.warm_up, daemon=True).start()
            found = self.LINE.search(line)
            if found and is_ready:
                log("request", found[2], found[3], found[1])
            elif found:
                is_ready = True
                log("ready")
            elif "login=" in line:
                log("login", line.rsplit("login=", 1)[1].strip())
            elif "Accepted" not in line and "Closing" not in line:
                print(line, end="", file=sys.stderr, flush=True)


    def warm_up(self):
        """Requests the login page once."""
        with self.lock:
            if not self.is_warm:
                self.is_warm = True
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                opener.open(f"http://127.0.0.1:{self.port}{self.login_page}").read()


ROUTER = """<?php
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
if ($path === '/-test/expire') {{
    array_map('unlink', glob('{sessions}/sess_*'));
    // It does not come before a router.
    require_once '{prelude}';
    forget_sessions();
    http_response_code(204);
    return true;
}}
if ($_SERVER['REQUEST_METHOD'] === 'POST' && isset($_POST['{name_field}'])) error_log('login=' . $_POST['{name_field}']);
return false;
"""
