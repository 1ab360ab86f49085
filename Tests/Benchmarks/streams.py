# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Long bodies over raw sockets, each mebibyte of them compared: the upstream that sends and takes them, and its callers."""

import os
import random
import socket
import threading
import time

BLOCK = 1 << 20
# Random, so that no shift and no repetition goes unseen; each block begins with its number.
PATTERN = random.Random(9110).randbytes(BLOCK - 8)


class Broken(Exception):
    """A body that is not what was sent."""


def block(number):
    return number.to_bytes(8, "big") + PATTERN


def send_body(connection, size):
    for number in range(-(-size // BLOCK)):
        connection.sendall(memoryview(block(number))[:size - number * BLOCK])


def take_body(connection, size, first=b"", pause=None):
    """Takes exactly `size` bytes, the `first` of which have come already, and compares all of them."""
    buffer, number, taken = bytearray(BLOCK), 0, 0
    view = memoryview(buffer)
    while taken < size:
        wanted = min(BLOCK, size - taken)
        filled = min(len(first), wanted)
        buffer[:filled], first = first[:filled], first[filled:]
        while filled < wanted:
            count = connection.recv_into(view[filled:wanted])
            if not count:
                raise Broken(f"the body ends after {taken + filled} of {size} bytes")
            filled += count
            if pause:
                time.sleep(pause)
        if buffer[:wanted] != block(number)[:wanted]:
            raise Broken(f"the body differs in the block at {taken}")
        taken += wanted
        number += 1
    return first


def read_head(connection):
    """The head, and what came behind it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            raise Broken(f"the connection ended within a head: {data[:200]!r}")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def field(head, name):
    for line in head.split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name:
            return value.strip()
    return None


class ForkedServer:
    """A server on a free port, a process of its own, for callers share the interpreter's lock; `_connection` serves each."""

    def __init__(self, backlog):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port = self.listener.getsockname()[1]
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._serve()
            finally:
                os._exit(0)
        self.listener.close()

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)

    def _serve(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self._connection, args=(connection,), daemon=True).start()


class Upstream(ForkedServer):
    """Takes and sends bodies for whoever has the token."""

    def __init__(self, token):
        self.token = token
        super().__init__(backlog=512)

    def _connection(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rest = b""
        try:
            while True:
                head, rest = read_head(Prefixed(connection, rest))
                rest = self._answer(connection, head, rest)
        except (Broken, OSError):
            connection.close()

    def _answer(self, connection, head, rest):
        _, path, _ = head.split(" ", 2)
        if path == "/token":
            rest = rest[int(field(head, "content-length") or 0):]
            connection.sendall(token_answer(self.token))
        elif field(head, "authorization") != f"Bearer {self.token}":
            connection.sendall(response_head("401 Unauthorized", 0, "WWW-Authenticate: Bearer\r\n"))
        elif path.startswith("/down/"):
            size = int(path.removeprefix("/down/"))
            connection.sendall(response_head("200 OK", size))
            send_body(connection, size)
        else:
            size = int(field(head, "content-length") or 0)
            if field(head, "expect"):
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            rest = take_body(connection, size, rest)
            connection.sendall(response_head("200 OK", 0))
        return rest


class Prefixed:
    """A connection from which something was read already."""

    def __init__(self, connection, prefix):
        self.connection, self.prefix = connection, prefix

    def recv(self, count):
        if self.prefix:
            piece, self.prefix = self.prefix, b""
            return piece
        return self.connection.recv(count)


def token_answer(token):
    """What a token endpoint says (RFC 6749 section 5.1)."""
    body = b'{"access_token": "%s", "token_type": "Bearer", "expires_in": 86400}' % token.encode()
    return response_head("200 OK", len(body), "Content-Type: application/json\r\n") + body


def response_head(status, length, more=""):
    return f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{more}\r\n".encode()


def down(port, size, pause=None):
    """One body down. `pause`: seconds between two reads."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET /down/{size} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        head, rest = read_head(connection)
        _expect(head)
        take_body(connection, size, rest, pause)


def up(port, size):
    """One body up."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(
            f"PUT /up HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {size}\r\n\r\n".encode())
        send_body(connection, size)
        head, _ = read_head(connection)
        _expect(head)


def _expect(head):
    if " 200 " not in head.split("\r\n")[0] + " ":
        raise Broken(f"not 200: {head[:300]}")


def at_once(count, one):
    """Runs `one` in `count` processes; raises where any of them failed."""
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                one()
                code = 0
            except (Broken, OSError) as error:
                print(f"streams: {error}", flush=True)
            finally:
                os._exit(code)
        pids.append(pid)
    codes = [os.waitpid(pid, 0)[1] for pid in pids]
    if any(codes):
        raise Broken(f"{sum(map(bool, codes))} of {count} bodies went wrong")
