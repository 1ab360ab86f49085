# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""A caller's connection: raw bytes out, raw bytes in, and the way it ended."""

import select
import socket
import struct
import time

import wire


class Caller:
    """`ended` is open, closed (the proxy said that nothing more comes) or reset."""

    def __init__(self, address, methods=()):
        self.socket = socket.create_connection(address, timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.methods = list(methods)
        self.received, self.sent = bytearray(), bytearray()
        self.ended, self.cannot_send = "open", False
        self._parsed = None

    def send(self, data, seconds=5.0):
        """Sends all of it, receiving meanwhile; less if the proxy does not read."""
        view, end = memoryview(data), time.monotonic() + seconds
        while view and not self.cannot_send:
            left = end - time.monotonic()
            if left <= 0:
                break
            readers = [self.socket] if self.ended == "open" else []
            readable, writable, _ = select.select(readers, [self.socket], [], left)
            if readable:
                self._receive()
            if writable:
                try:
                    count = self.socket.send(view[:1 << 16])
                    self.sent += view[:count]
                    view = view[count:]
                except BlockingIOError:
                    pass
                except OSError:
                    self.cannot_send = True
                    self.pump(0)

    def half_close(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def leave(self, reset=False):
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        if self.ended == "open":
            self.ended = "left"

    def pump(self, seconds):
        """Receives what comes within that time; whether anything did."""
        if self.ended != "open":
            return False
        readable, _, _ = select.select([self.socket], [], [], max(seconds, 0))
        return bool(readable) and self._receive()

    def wait(self, condition, seconds):
        """Receives until the condition holds, the connection ends or the time is over."""
        end = time.monotonic() + seconds
        while not condition() and self.ended == "open":
            left = end - time.monotonic()
            if left <= 0:
                break
            self.pump(left)
        return condition()

    def _receive(self):
        try:
            piece = self.socket.recv(1 << 18)
        except BlockingIOError:
            return False
        except OSError:
            self.ended, self._parsed = "reset", None
            return True
        if piece:
            self.received += piece
        else:
            self.ended = "closed"
        self._parsed = None
        return True

    def _parse(self):
        if self._parsed is None:
            self._parsed = wire.parse_responses(self.received, self.methods, self.ended)
        return self._parsed

    @property
    def responses(self):
        return self._parse()[0]

    @property
    def rest(self):
        """Bytes that belong to no response."""
        return self._parse()[1]

    @property
    def finals(self):
        return [response for response in self.responses if not response.interim]

    def final_count(self):
        """Final responses that are all there."""
        return sum(1 for response in self.finals if response.body.complete)
