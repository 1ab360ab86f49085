# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Admission of callers by the kernel's identification: whatever fails, no caller is admitted whom the kernel does not name."""

import contextlib
import encodings.idna  # The other user may not read the library, in which names of hosts are looked at.
import os
import signal
import socket

from scenario import Scenario
from stage import until
from upstream import RIGHT

NOBODY, SOMEBODY = 65534, 1000
# The caller of this address leaves without an answer.
LEFT = "/own/left"


def send_as(user, port, path):
    """A process of that user that sends a POST, and ends; its socket is closed then, in any case."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            with socket.create_connection(("127.0.0.1", port), 10) as caller:
                caller.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi".encode())
                if path != LEFT:
                    caller.settimeout(10)
                    caller.recv(65536)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


class Others(Scenario):
    """Callers of other users than the torture's own."""

    def prepare(self):
        if os.geteuid() != 0:
            raise RuntimeError("a caller of another user can be started by root only")
        super().prepare()


class Orphan(Others):
    """A caller of another user who has gone when the daemon looks for the owner of the socket: to the kernel that is user 0."""

    def prepare(self):
        text = self.stage.read("countersign.yaml")
        self.stage.write("countersign.yaml", text.replace("routes: [", "routes: [{ path: /own/, users: [root], upstream: site }, "))
        super().prepare()

    def act(self):
        # Stopped, the daemon accepts the connection after its caller has gone.
        self.stage.process.send_signal(signal.SIGSTOP)
        if not send_as(NOBODY, self.stage.port, LEFT):
            raise RuntimeError("the caller of another user could not send its request")
        self.stage.process.send_signal(signal.SIGCONT)
        self.stage.ask("/own/one")
        self.stage.ask("/open/two")

    def check(self):
        if self.upstream.arrived[LEFT]:
            self.find(1, "the request of a caller who had gone was forwarded as root's")


class ByUser(Others):
    """A credential for each user: requests of one user never carry that of another."""

    def prepare(self):
        text = self.stage.read("countersign.yaml")
        place = f"http://127.0.0.1:{self.upstream.port}/mine/*"
        challenge = f'{{ name: mine, at: "{place}", scheme: basic, credential: {{ by-user: {{ nobody: bob, "*": ann }} }} }}'
        self.stage.write("countersign.yaml", text.replace("challenges:\n", f"challenges:\n  - {challenge}\n"))
        self.stage.variables.update({"COUNTERSIGN_BOB__USERNAME": "bob", "COUNTERSIGN_BOB__PASSWORD": RIGHT[1]})
        super().prepare()

    def act(self):
        self.stage.ask("/mine/ann")
        send_as(NOBODY, self.stage.port, "/mine/bob")
        self.stage.ask("/mine/ann")

    def check(self):
        for path, users in self.upstream.users.items():
            for user in users - {path.removeprefix("/mine/")}:
                self.find(1, f"{path} was asked for with the password of {user}")


class Foreign(Others):
    """A daemon in a user namespace of its own, in which the kernel has one number for all users from outside: that of
    `nobody`."""

    def prepare(self):
        self.stage.prefix = ["unshare", "--user", "--map-root-user"]
        super().prepare()

    def act(self):
        send_as(SOMEBODY, self.stage.port, "/closed/somebody")
        self.stage.ask("/open/one")

    def check(self):
        if self.upstream.arrived["/closed/somebody"]:
            self.find(1, "the request of a user whom the daemon cannot know was forwarded as nobody's")


class Takeover(Scenario):
    """A socket in the file system whose path another program has taken: the end of the daemon leaves it there."""

    def prepare(self):
        text = self.stage.read("countersign.yaml")
        self.stage.write(
            "countersign.yaml", text.replace("upstreams:\n", f'  - {{ address: "unix:{self.stage.path("calls.sock")}", upstream: site }}\nupstreams:\n'))
        super().prepare()

    def act(self):
        path = self.stage.path("calls.sock")
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(10)
            if until(lambda: os.path.exists(path)):
                with contextlib.suppress(OSError):  # The fault may be on that connection.
                    caller.connect(path)
                    caller.sendall(b"GET /open/one HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    caller.recv(65536)
                os.remove(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            self.identity = os.stat(path).st_ino
            self.code = self.stage.stop()

    def check_process(self):
        if self.code != 0:
            self.find(2, f"ended with {self.code} on SIGTERM: {self.last_words()}")

    def check(self):
        path = self.stage.path("calls.sock")
        if not os.path.exists(path) or os.stat(path).st_ino != self.identity:
            self.find(1, "the socket of the program that had taken the path was removed")
        elif os.path.exists(path):
            os.remove(path)

    def recover(self):
        self.again()
