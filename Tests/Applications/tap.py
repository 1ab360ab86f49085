# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The wire between Countersign and an application: passes all bytes, and remembers those that Countersign sent."""

import contextlib
import re
import socket
import sys
import threading


class Tap:
    """Listens on a port of its own and forwards to the application's."""

    # More than the requests of all checks of one application.
    MOST = 4 << 20

    def __init__(self, target):
        self.target, self.lock, self.sent, self.open = target, threading.Lock(), [], set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def clear(self):
        with self.lock:
            self.sent = []

    def count(self, pattern):
        """How often the pattern stands in what was sent since `clear`."""
        with self.lock:
            return sum(len(re.findall(pattern, stream)) for stream in self.sent)

    def stop(self):
        # By itself, `close` leaves the port open until the next caller, as another thread waits for one.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for each in self.open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self.listener.accept()
                threading.Thread(target=self._connect, args=(caller,), daemon=True).start()

    def _connect(self, caller):
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
        except OSError as error:
            print(f"tap: no connection to port {self.target}: {error}", file=sys.stderr)
            caller.close()
            return
        server.settimeout(None)
        with self.lock:
            self.open |= {caller, server}
        stream = None
        answers = threading.Thread(target=self._copy, args=(server, caller), daemon=True)
        answers.start()
        for piece in self._pieces(caller):
            with self.lock:
                # After `clear`, an old connection begins a stream of its own.
                if stream is None or not any(stream is each for each in self.sent):
                    stream = bytearray()
                    self.sent.append(stream)
                stream += piece[:max(0, self.MOST - len(stream))]
            with contextlib.suppress(OSError):
                server.sendall(piece)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)
        answers.join()
        with self.lock:
            self.open -= {caller, server}
        caller.close()
        server.close()

    def _copy(self, source, target):
        with contextlib.suppress(OSError):
            for piece in self._pieces(source):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    @staticmethod
    def _pieces(source):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                yield piece
