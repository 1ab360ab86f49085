# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Callers over raw sockets, thousands of them: they connect, ask, read the answer, and stay."""

import resource
import socket


class Unanswered(Exception):
    """A request that did not get the answer that it should."""


def allow_many():
    """Lets this process have as many connections as it may."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connect(port):
    caller = socket.create_connection(("127.0.0.1", port), timeout=20)
    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return caller


def request(caller, path, fields=""):
    """`fields`: more of them, each with its end of line."""
    caller.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())


def answer(caller):
    """The status of one response, which is read to its end."""
    text = b""
    while b"\r\n\r\n" not in text:
        piece = caller.recv(65536)
        if not piece:
            raise Unanswered(f"a connection ended after {text!r}")
        text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    fields = head.lower().split(b"\r\n")
    length = next((int(field[15:]) for field in fields if field.startswith(b"content-length:")), None)
    while len(body) < length if length is not None else not body.endswith(b"0\r\n\r\n"):
        piece = caller.recv(65536)
        if not piece:
            raise Unanswered("a response was cut off")
        body += piece
    return int(head.split()[1])


def open_callers(port, path, count, at_once=100):
    """That many connections, each with one request answered; `at_once` of them ask together."""
    callers = []
    while len(callers) < count:
        batch = [connect(port) for _ in range(min(at_once, count - len(callers)))]
        for caller in batch:
            request(caller, path)
        for caller in batch:
            status = answer(caller)
            if status != 200:
                raise Unanswered(f"a request was answered with {status}")
        callers += batch
    return callers
