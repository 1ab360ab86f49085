# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""One run: a folder, the daemon or a command in it, and callers. Every wait has a limit."""

import array
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass

BOUND = 12.0

CONFIGURATION = """\
listeners:
  - address: 127.0.0.1:{port}
    upstream: site
    routes: [{{ path: /closed/, users: [nobody], upstream: site }}]
upstreams:
  site:
    url: http://127.0.0.1:{upstream}/
    timeouts: {{ connect: 2s, response: 4s, idle: 4s, login: 6s }}
    replay: {{ memory: 4KiB, disk: 16MiB }}
credentials: {{ sources: [env, exec: [{folder}/helper]] }}
challenges:
  - {{ name: basic, at: "http://127.0.0.1:{upstream}/basic/*", scheme: basic, credential: ann }}
  - {{ name: proved, at: "http://127.0.0.1:{upstream}/proved/*", scheme: basic, credential: ann, prove-at: /proved/whoami }}
  - {{ name: form, at: "http://127.0.0.1:{upstream}/form/*", gateway: j-security-check, credential: ann }}
  - name: api
    at: http://127.0.0.1:{upstream}/api/*
    scheme: bearer
    credential: api
    token: {{ grant: refresh-token, url: "http://127.0.0.1:{upstream}/token/" }}
admin: {{ address: "unix:{folder}/admin.sock" }}
log: {{ level: info, format: text }}
workers: 1
"""
HELPER = """#!/bin/sh
read -r asked
echo run >> {folder}/helped
echo '{{"fields":{{"username":"ann","password":"demo"}}}}'
"""


@dataclass
class Answer:
    """The answer that a caller received; `status` is 0 without a whole answer."""
    status: int
    text: str
    seconds: float
    fault: str = ""

    @property
    def code(self):
        found = re.search(r'"code":\s*"([\w-]+)"', self.text)
        return found.group(1) if found else ""

    def __str__(self):
        return f"{self.status or self.fault}{' ' + self.code if self.code else ''} after {self.seconds:.1f} s"


def until(condition, seconds=BOUND):
    """True once the condition holds, which another process brings about; false at the end of the time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.004)
    return True


TAKEN = set()


def free_port():
    """A port below those that the kernel gives to connections: no other process takes it before the daemon does."""
    while True:
        port = random.randrange(10000, 32000)
        # Another run of this process may have chosen it, and not have opened it yet.
        if port in TAKEN:
            continue
        TAKEN.add(port)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def send_request(port, path, method="GET", body=None):
    """A request on a connection of its own."""
    begin = time.monotonic()
    text = b""
    fault = ""
    try:
        with socket.create_connection(("127.0.0.1", port), BOUND) as caller:
            caller.settimeout(BOUND)
            length = f"Content-Length: {len(body)}\r\n" if body is not None else ""
            with contextlib.suppress(ConnectionError):  # There may be an answer all the same.
                caller.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}\r\n".encode() + (body or b""))
            while piece := caller.recv(65536):
                text += piece
    except TimeoutError:
        fault = "timeout"
    except OSError as error:
        fault = type(error).__name__
    head, _, rest = text.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    is_whole = bool(head) and (not length or len(rest) == int(length.group(1))) and (fault != "timeout")
    status = int(head.split()[1]) if is_whole else 0
    return Answer(status, rest.decode(errors="replace"), time.monotonic() - begin, fault or ("" if is_whole else "cut off"))


class Manager:
    """A service manager's socket: readiness, and stored descriptors."""

    def __init__(self, folder):
        self.path, self.stored, self.words = os.path.join(folder, "notify"), [], []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.thread = threading.Thread(target=self.receive, daemon=True)
        self.thread.start()

    def receive(self):
        while True:
            try:
                text, control, _, _ = self.socket.recvmsg(8192, socket.CMSG_SPACE(64))
            except OSError:
                return
            if text == b"END":
                return
            received = array.array("i")
            for _, _, data in control:
                received.frombytes(data[:len(data) // 4 * 4])
            self.words.append(text.decode())
            if b"FDSTORE=1" in text:
                self.forget()
                self.stored = list(received)
                continue
            if b"FDSTOREREMOVE=1" in text:
                self.forget()
            for descriptor in received:
                os.close(descriptor)

    def forget(self):
        for descriptor in self.stored:
            os.close(descriptor)
        self.stored = []

    def close(self):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"END", self.path)
        self.thread.join(2)
        self.socket.close()
        self.forget()


class Stage:
    """A fresh folder with a configuration, and the processes of one run."""

    def __init__(self, binary, folder, upstream, faults):
        self.binary, self.folder, self.upstream, self.faults = binary, folder, upstream, faults
        self.port, self.second = free_port(), 0
        for own in ("state", "run"):
            os.makedirs(os.path.join(folder, own), mode=0o700)
        self.write("countersign.yaml", CONFIGURATION.format(port=self.port, upstream=upstream.port, folder=folder))
        self.write("helper", HELPER.format(folder=folder))
        os.chmod(self.path("helper"), 0o700)
        self.variables = {
            "PATH": "/usr/bin:/bin", "STATE_DIRECTORY": self.path("state"), "RUNTIME_DIRECTORY": self.path("run"),
            "COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": "demo", "COUNTERSIGN_API__CLIENT_ID": "id",
            "COUNTERSIGN_API__CLIENT_SECRET": "secret", "COUNTERSIGN_API__REFRESH_TOKEN": "refresh-0",
            "COUNTERSIGN_KEYRING_PASSPHRASE": "words"}
        # The number of a mutant, in a program of `Tests/Mutants`.
        if number := os.environ.get("COUNTERSIGN_MUTANT"):
            self.variables["COUNTERSIGN_MUTANT"] = number
        self.log, self.process, self.manager, self.starts, self.answers = "", None, None, 0, []
        # A command that becomes the program.
        self.prefix = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def read(self, name):
        with contextlib.suppress(FileNotFoundError), open(self.path(name), errors="replace") as file:
            return file.read()
        return ""

    def spawn(self, words, log, is_tortured=True, text=None, stored=()):
        """Starts the program. `stored`: descriptors that it inherits as those of the manager's store."""
        variables = dict(self.variables)
        if is_tortured:
            variables |= self.faults.environment
        command = [*self.prefix, self.binary, *words]
        if stored:
            variables |= {"LISTEN_FDS": str(len(stored)), "LISTEN_FDNAMES": ":".join(["countersign-sessions"] * len(stored))}
            moves = " ".join(f"{3 + index}<&{descriptor}" for index, descriptor in enumerate(stored))
            command = ["/bin/bash", "-c", f'export LISTEN_PID=$$; exec "$@" {moves}', "bash", *command]
        with open(self.path(log), "ab") as output:
            self.process = subprocess.Popen(
                command, env=variables, stdin=subprocess.PIPE if text is not None else subprocess.DEVNULL, stdout=output, stderr=output,
                pass_fds=stored)
        if text is not None:
            with contextlib.suppress(BrokenPipeError), self.process.stdin as to:
                to.write(text.encode())
        return self.process

    def start(self, is_tortured=True, stored=()):
        """Starts the daemon. Returns "" once it accepts callers, or what happened instead."""
        self.starts += 1
        self.log = f"log-{self.starts}"
        self.spawn(["serve", "--config", self.path("countersign.yaml")], self.log, is_tortured, stored=stored)
        until(lambda: self.process.poll() is not None or self.accepts(self.port))
        # One that fails after its socket was opened has listened for a moment.
        until(lambda: self.process.poll() is not None or self.accepts(self.port))
        if self.process.poll() is not None:
            return f"exit {self.process.returncode}"
        return "" if self.accepts(self.port) else "hangs before it accepts callers"

    def accepts(self, port):
        with open("/proc/net/tcp") as table:
            return f"0100007F:{port:04X} 00000000:0000 0A" in table.read()

    def ask(self, path, method="GET", body=None, port=None):
        answer = send_request(port or self.port, path, method, body)
        self.answers.append((f"{method} {path}", answer))
        return answer

    def wait_for_exit(self, seconds=BOUND):
        """The exit status, or None for a process that does not end."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, number=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait_for_exit()

    def use_manager(self):
        self.manager = Manager(self.folder)
        self.variables["NOTIFY_SOCKET"] = self.manager.path

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.manager:
            self.manager.close()
        self.faults.close()
