# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Countersign in front of one application: cold, with the documents' configuration, and state of its own."""

import contextlib
import os
import re
import socket

import processes

LISTENER = "listeners:\n  - address: 127.0.0.1:{port}\n    upstream: {name}\n\n"


def configuration(application, port=8080):
    """The whole configuration: that of the application, with a listener."""
    return LISTENER.format(port=port, name=application.name) + application.configuration.strip() + "\n"


def lines(application):
    """The lines of YAML for the application: its upstream and its challenge, without comments, blank lines and the listener."""
    written = (line.strip() for line in application.configuration.split("\n"))
    return sum(bool(line) and not line.startswith("#") and line not in ("upstreams:", "challenges:") for line in written)


class Daemon:
    """A `with` block in which the daemon runs."""

    def __init__(self, binary, application, folder, password=None):
        self.port, self.folder, name = processes.free_port(), folder, application.name
        for own in ("state", "run"):
            os.makedirs(os.path.join(folder, own), mode=0o700)
        text = configuration(application, self.port)
        for written, real in application.addresses.items():
            text = text.replace(written, real)
        text = application.localized(text)
        self.socket = os.path.join(folder, "admin.sock")
        text += f"\nadmin: {{ address: \"unix:{self.socket}\" }}\nlog: {{ level: debug, format: text }}\n"
        path = os.path.join(folder, "countersign.yaml")
        with open(path, "w") as file:
            file.write(text)
        variable = "COUNTERSIGN_" + re.sub(r"\W", "_", name).upper()
        values = {"username": application.username, "password": password or application.password, **application.more_fields}
        self.environment = {
            f"{variable}__{field.upper().replace('-', '_')}": values[field] for field in [*application.fields, *application.more_fields]}
        self.environment.update(STATE_DIRECTORY=f"{folder}/state", RUNTIME_DIRECTORY=f"{folder}/run")
        self.command = [os.path.abspath(binary), "serve", "--config", path]

    def __enter__(self):
        self.child = processes.Child(self.command, self.folder, self.environment, "countersign")
        try:
            self.child.wait_until_it_listens(self.port, 20)
        except BaseException:
            self.child.stop()
            raise
        return self

    def __exit__(self, *_):
        self.child.stop()

    def logins(self):
        """The logins that ended, by the metrics."""
        counted = re.findall(r'^countersign_logins_total\{[^}]*kind="login"[^}]*\} (\d+)', self._metrics(), re.MULTILINE)
        return sum(int(count) for count in counted)

    def _metrics(self):
        with socket.socket(socket.AF_UNIX) as asked, contextlib.suppress(TimeoutError):
            asked.settimeout(10)
            asked.connect(self.socket)
            asked.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            text = b""
            while piece := asked.recv(65536):
                text += piece
        return text.decode()
