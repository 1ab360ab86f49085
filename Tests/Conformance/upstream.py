# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""An upstream that follows its script and records the exact bytes that it received."""

import socket
import struct
import threading
import time
from dataclasses import dataclass, field

import wire
from case import BODY, CLOSE, ECHO, RESET, SILENCE, Gate, Pause, Reply

LONGEST = 10.0


@dataclass
class Received:
    """A request as it arrived upstream."""
    index: int
    connection: int
    raw_head: bytes
    method: bytes = b""
    target: bytes = b""
    minor: int = 1
    fields: wire.Fields = field(default_factory=wire.Fields)
    kind: str = "none"
    body: wire.Body = field(default_factory=wire.Body)
    # The fault of the request, by the letter of the standard.
    problem: str = None
    # After an upgrade: what came through.
    tunnel: bytes = b""

    @property
    def complete(self):
        return self.body.complete and self.problem is None


class Script:
    """The upstream's part of one case: what it is to do, and what it has seen."""

    def __init__(self, replies=(), sticky=False):
        self.replies, self.sticky = replies, sticky
        self.changed = threading.Condition()
        self.requests, self.strays, self.sockets, self.gates = [], [], [], {}
        self.connections = 0
        self.over = False

    def reply(self, index):
        if index < len(self.replies):
            return self.replies[index]
        return self.replies[-1] if self.sticky and self.replies else None

    def gate(self, name):
        with self.changed:
            return self.gates.setdefault(name, threading.Event())

    def wait(self, condition, seconds):
        with self.changed:
            return self.changed.wait_for(condition, seconds)

    def note(self):
        with self.changed:
            self.changed.notify_all()

    def end(self):
        with self.changed:
            self.over = True
            sockets, self.sockets = self.sockets, []
            gates = list(self.gates.values())
        for each in gates:
            each.set()
        for each in sockets:
            _shut(each)


class Upstream:
    """A listener; each connection belongs to the script in force when it was made."""

    def __init__(self, port=0):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        self.script = Script()
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self, replies, sticky):
        self.script.end()
        self.script = Script(replies, sticky)
        return self.script

    def stop(self):
        self.script.end()
        _shut(self.listener)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            script = self.script
            with script.changed:
                number, script.connections = script.connections, script.connections + 1
                script.sockets.append(connection)
            threading.Thread(target=_Connection(connection, script, number).run, daemon=True).start()


class _Connection:
    def __init__(self, connection, script, number):
        self.socket, self.script, self.number = connection, script, number
        self.data, self.at, self.ended = bytearray(), 0, False
        connection.settimeout(LONGEST)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self):
        try:
            while self._exchange():
                pass
        except OSError:
            pass
        finally:
            _shut(self.socket)
            self.script.note()

    def _receive(self):
        try:
            piece = self.socket.recv(1 << 18)
        except OSError:
            piece = b""
        if not piece:
            self.ended = True
            return False
        self.data += piece
        return True

    def _exchange(self):
        while (end := self.data.find(b"\r\n\r\n", self.at)) < 0:
            if not self._receive():
                if self.at < len(self.data):
                    self.script.strays.append(bytes(self.data[self.at:]))
                return False
        head = bytes(self.data[self.at:end + 4])
        self.at = end + 4
        received = self._understand(head)
        with self.script.changed:
            received.index = len(self.script.requests)
            self.script.requests.append(received)
            self.script.changed.notify_all()
        if received.problem:
            self.socket.sendall(b"HTTP/1.1 400 Bad Request\r\nX-Up: bad\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return False
        reply = self.script.reply(received.index) or Reply((BODY, _default(received)))
        for step in reply.steps:
            if not self._do(step, received):
                return False
        return self._read_body(received)

    def _understand(self, head):
        line, _, block = head.partition(b"\r\n")
        received = Received(0, self.number, head)
        match = wire.REQUEST_LINE.fullmatch(line)
        if not match:
            received.problem = f"request line {line[:100]!r}"
            return received
        received.method, received.target, received.minor = match.group(1), match.group(2), int(match.group(3))
        received.fields, received.problem = wire.parse_fields(block[:-2])
        received.kind, self.length, wrong = wire.framing(received.fields, received.minor)
        received.problem = received.problem or wrong
        if received.kind == "none":
            received.body = wire.Body(end=self.at, complete=True)
        return received

    def _read_body(self, received):
        """Reads to the end of the request; whether there may be another one."""
        while not received.complete:
            if received.kind == "chunked":
                received.body = wire.read_chunked(self.data, self.at)
            elif received.kind == "length":
                received.body = wire.read_length(self.data, self.at, self.length)
            self.script.note()
            if received.body.problem:
                received.problem = received.body.problem
                return False
            if received.body.complete:
                self.at = received.body.end
            elif not self._receive():
                return False
        return True

    def _do(self, step, received):
        if step is BODY:
            return self._read_body(received)
        if isinstance(step, bytes):
            self.socket.sendall(step)
        elif isinstance(step, Pause):
            time.sleep(step.seconds)
        elif isinstance(step, Gate):
            self.script.gate(step.name).wait(LONGEST)
            return not self.script.over
        elif step is CLOSE:
            return False
        elif step is RESET:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.socket.close()
            return False
        elif step is ECHO:
            self._echo(received)
            return False
        elif step is SILENCE:
            while self._receive():
                pass
            return False
        return True

    def _echo(self, received):
        self.data = self.data[self.at:]
        self.at = 0
        while True:
            received.tunnel += bytes(self.data)
            self.script.note()
            if self.data:
                self.socket.sendall(bytes(self.data).upper())
            self.data = bytearray()
            if not self._receive():
                return


def _default(received):
    body = received.method + b" " + received.target
    head = b"HTTP/1.1 200 OK\r\nX-Up: 1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body)
    return head if received.method == b"HEAD" else head + body


def _shut(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()
