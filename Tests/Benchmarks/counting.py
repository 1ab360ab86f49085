# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Counts what requests cost, exactly: system calls as strace writes them down, allocations by a library that is preloaded,
and instructions by callgrind."""

import collections
import glob
import os
import re
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass

import configurations
import streams
from processes import wait_until

# Hash tables are laid out anew in each process, unless told otherwise; a debug build allocates as it walks one.
STEADY = {"SWIFT_DETERMINISTIC_HASHING": "1"}
HERE = os.path.dirname(os.path.abspath(__file__))
# `PID name(…` and `PID <... name resumed>…`; the second is the end of a call that was counted when it began.
CALL = re.compile(r"^\d+ +(\w+)\(")


@dataclass(frozen=True)
class Request:
    """What is counted. The answer's size stands in its path."""
    method: str
    answer_bytes: int
    body_bytes: int = 0
    at_once: int = 1
    # The listener, and with it what the session is made of.
    kind: str = "plain"
    # Cookies of the caller's own.
    cookies: str = ""


REQUESTS = {
    "GET of 65 bytes": Request("GET", 65),
    "GET of 16 KiB": Request("GET", 16384),
    "POST of 4 KiB": Request("POST", 65, 4096),
    "GET of 65 bytes with cookies": Request("GET", 65, kind="cookies"),
    "GET of 65 bytes with cookies and the caller's": Request("GET", 65, kind="cookies", cookies="theme=dark; basket=9b1d3c7e"),
    "GET of 65 bytes with Digest": Request("GET", 65, kind="digest"),
    "GET of 65 bytes with realms": Request("GET", 65, kind="realms"),
    "GET of 65 bytes, 64 at once": Request("GET", 65, at_once=64),
}


class Upstream:
    """Answers each request in one piece, so that nothing depends on how a body comes in segments."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def end(self):
        self.listener.close()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connection, args=(connection,), daemon=True).start()

    def _connection(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rest = b""
        try:
            while True:
                head, rest = streams.read_head(streams.Prefixed(connection, rest))
                length = int(streams.field(head, "content-length") or 0)
                while len(rest) < length:
                    rest += connection.recv(65536)
                rest = rest[length:]
                connection.sendall(self._answer(head))
        except (streams.Broken, OSError):
            connection.close()

    def _answer(self, head):
        path = head.split(" ", 2)[1]
        if path == "/token":
            return streams.token_answer(configurations.TOKEN)
        if path == "/login":
            lines = "".join(f"Set-Cookie: {cookie}; Path=/; HttpOnly\r\n" for cookie in configurations.COOKIES)
            return streams.response_head("200 OK", 0, lines)
        cookies = (streams.field(head, "cookie") or "").split("; ")
        authorization = streams.field(head, "authorization") or ""
        is_known = authorization == configurations.AUTHORIZATION or authorization.startswith(
            ("AWS4-", "Basic ", "Digest ", f"Bearer {configurations.SECRET}"))
        if not is_known and not {*configurations.COOKIES} <= {*cookies}:
            lines = "".join(f"WWW-Authenticate: {challenge}\r\n" for challenge in configurations.CHALLENGES)
            return streams.response_head("401 Unauthorized", 0, lines)
        size = int(path.removeprefix("/"))
        return streams.response_head("200 OK", size) + b"x" * size


class Callers:
    """One caller on one connection, one request at a time; or as many as a request wants, each on its own."""

    def __init__(self, ports):
        self.ports = ports
        self.connections = {kind: [] for kind in ports}

    def ask(self, request, times):
        connections = self.connections[request.kind]
        while len(connections) < request.at_once:
            connection = socket.create_connection(("127.0.0.1", self.ports[request.kind]), timeout=60)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections.append(connection)
        text = f"{request.method} /{request.answer_bytes} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()
        if request.body_bytes:
            text += f"Content-Length: {request.body_bytes}\r\n".encode()
        if request.cookies:
            text += f"Cookie: {request.cookies}\r\n".encode()
        text += b"\r\n" + b"y" * request.body_bytes
        taking_part = connections[:request.at_once]
        for _ in range(times // request.at_once):
            for connection in taking_part:
                connection.sendall(text)
            for connection in taking_part:
                self._take(connection, request)

    def _take(self, connection, request):
        head, body = streams.read_head(connection)
        if " 200 " not in head:
            raise streams.Broken(f"not 200: {head[:300]}")
        missing = request.answer_bytes - len(body)
        while missing > 0:
            piece = connection.recv(missing)
            if not piece:
                raise streams.Broken("the answer was cut off")
            missing -= len(piece)


class SystemCalls:
    """Runs the daemon under strace; counts the calls that it has made."""

    def __init__(self, folder):
        self.file = f"{folder}/calls"

    def command(self, command):
        return ["strace", "-f", "-qq", "-o", self.file, *command]

    def environment(self):
        return STEADY

    def counted(self):
        """By name. Read once nothing more is written: the daemon is at rest."""
        size = -1

        def is_quiet():
            nonlocal size
            before, size = size, os.path.getsize(self.file)
            time.sleep(0.1)
            return before == size

        wait_until(is_quiet, 10)
        with open(self.file, errors="replace") as file:
            return collections.Counter(found.group(1) for found in map(CALL.match, file) if found)


class Allocations:
    """Runs the daemon with `allocations.c` preloaded; counts what it asks of the allocator."""

    def __init__(self, folder):
        self.library, self.file = f"{folder}/allocations.so", f"{folder}/allocations"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self.library, f"{HERE}/allocations.c"], check=True)
        with open(self.file, "wb") as file:
            file.write(bytes(16))

    def command(self, command):
        return command

    def environment(self):
        return {**STEADY, "LD_PRELOAD": self.library, "COUNTED_ALLOCATIONS": self.file}

    def counted(self):
        with open(self.file, "rb") as file:
            number, size = struct.unpack("<QQ", file.read(16))
        return collections.Counter({"allocations": number, "bytes": size})


class Instructions:
    """Runs the daemon under callgrind; counts the instructions of it and of its libraries, none of the kernel's."""

    def __init__(self, folder):
        self.folder = folder

    def command(self, command):
        # valgrind does not understand the debug information of Swift; the names of functions it does.
        stripped = f"{self.folder}/stripped"
        subprocess.run(["strip", "--strip-debug", "-o", stripped, command[0]], check=True)
        return [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.folder}/profile", f"--log-file={self.folder}/valgrind",
            f"--vgdb-prefix={self.folder}/vgdb", stripped, *command[1:]]

    def environment(self):
        return STEADY

    def counted(self):
        """Each dump has what was done since the one before."""
        subprocess.run(["vgdb", f"--vgdb-prefix={self.folder}/vgdb", "dump"], check=True, capture_output=True, timeout=60)
        total = 0
        for path in self.dumps():
            with open(path) as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("summary:"))
        return collections.Counter({"instructions": total})

    def dumps(self):
        """The files of all dumps until now, the latest last."""
        return sorted(glob.glob(f"{self.folder}/profile.*"), key=lambda path: int(path.rpartition(".")[2]))


def each(counter, callers, request, times):
    """What one request costs: the difference that about `times` of them make, shared out; the least of three times."""
    times = -(-times // request.at_once) * request.at_once
    found = []
    for _ in range(3):
        before = counter.counted()
        callers.ask(request, times)
        after = counter.counted()
        found.append({name: (after[name] - before[name]) / times for name in after})
    least = {name: min(costs.get(name, 0) for costs in found) for name in sorted(found[-1])}
    if request.at_once > 1:
        # How many come together in one turn is not the same each time, nor how long the turn is: after a long one a look at the socket
        # comes before a line is taken.
        for name in ("epoll_wait", "recvfrom"):
            least.pop(name, None)
    # The rest is what is done now and then, whoever asks.
    return {name: _rounded(cost) for name, cost in least.items() if cost >= 0.05}


def _rounded(cost):
    return round(cost) if cost < 1000 and abs(cost - round(cost)) < 0.05 else round(cost, 2)
