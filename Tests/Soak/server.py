# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""One upstream: a small HTTP/1.1 server that can be told to fail, and remembers what came."""

import asyncio
import hashlib
import json
import socket
import struct
from collections import Counter
from dataclasses import dataclass, field

LIMIT = 8 << 20


@dataclass
class Request:
    method: str
    target: str
    fields: dict
    body: bytes = b""

    @property
    def path(self):
        return self.target.partition("?")[0]

    def cookie(self, name):
        for pair in self.fields.get("cookie", "").split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                return value
        return None


@dataclass
class Response:
    status: int
    body: bytes = b""
    fields: list = field(default_factory=list)
    kind: str = "application/json"

    def head(self, length=None):
        lines = [f"HTTP/1.1 {self.status} Soak", f"Content-Type: {self.kind}"]
        lines.append("Transfer-Encoding: chunked" if length == "chunked" else f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines + [f"{name}: {value}" for name, value in self.fields]) + "\r\n\r\n").encode()


def answer(status, value, *fields):
    return Response(status, json.dumps(value).encode(), list(fields))


def pattern(name, length):
    """The bytes of a large body: reproducible by whoever knows its name."""
    seed = hashlib.sha256(name.encode()).digest()
    return (seed * (length // len(seed) + 1))[:length]


class Upstream:
    """A server whose `protection` decides who comes in; behind it, an application that echoes."""

    def __init__(self, protection):
        self.protection = protection
        self.name = protection.name
        self.fault = None
        self.fault_over = asyncio.Event()
        self.writers = set()
        self.arrived = 0
        self.served = 0
        # By the id of a request that has effects: how often it was carried out.
        self.carried_out = Counter()
        self.faults_done = Counter()
        self.problems = []
        self._server = None
        self.port = 0

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=LIMIT, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]
        self.protection.origin = f"http://127.0.0.1:{self.port}"

    def close_connections(self):
        for writer in list(self.writers):
            writer.close()

    async def begin(self, fault):
        """Starts to fail in that way, until `end`."""
        self.fault = fault
        self.fault_over.clear()
        if fault == "down":
            self._server.close()
            for writer in list(self.writers):
                writer.transport.abort()

    async def end(self):
        was, self.fault = self.fault, None
        self.fault_over.set()
        if was == "down":
            await self.start()

    async def _serve(self, reader, writer):
        self.writers.add(writer)
        try:
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (request := await self._read(reader, writer)) is not None:
                self.arrived += 1
                if not await self._respond(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass
        except Exception as error:
            self.problems.append(f"{self.name}: the fake itself failed: {error!r}")
        finally:
            self.writers.discard(writer)
            writer.close()

    async def _read(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        line, *rest = head.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ")
        fields = {}
        for text in rest:
            name, colon, value = text.partition(":")
            if colon:
                key = name.lower()
                fields[key] = f"{fields[key]}, {value.strip()}" if key in fields else value.strip()
        request = Request(method, target, fields)
        if "expect" in fields:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "transfer-encoding" in fields:
            pieces = []
            while size := int(await reader.readuntil(b"\r\n"), 16):
                pieces.append(await reader.readexactly(size))
                await reader.readexactly(2)
            await reader.readuntil(b"\r\n")
            request.body = b"".join(pieces)
        elif int(fields.get("content-length", 0)):
            request.body = await reader.readexactly(int(fields["content-length"]))
        return request

    async def _respond(self, request, writer):
        """Whether the connection goes on."""
        fault = self.fault
        user, refusal = self.protection.admit(request)
        identifier = request.fields.get("x-soak-id", "")
        if refusal is None and request.method == "POST":
            self.carried_out[identifier] += 1
        if fault == "slow":
            self.faults_done[fault] += 1
            await asyncio.sleep(1)
        elif fault is not None:
            self.faults_done[fault] += 1
            return await self._fail(fault, writer)
        if refusal is not None:
            writer.write(refusal.head() + (b"" if request.method == "HEAD" else refusal.body))
            await writer.drain()
            return True
        self.served += 1
        return await self._apply(request, user, identifier, writer)

    async def _apply(self, request, user, identifier, writer):
        what = request.path.strip("/").split("/")
        if what[0] == "stream":
            writer.write(Response(200, kind="text/event-stream").head("chunked"))
            for number in range(int(what[1])):
                text = f"data: {identifier} {number}\n\n".encode()
                writer.write(b"%x\r\n%s\r\n" % (len(text), text))
                await writer.drain()
                await asyncio.sleep(0.1)
            writer.write(b"0\r\n\r\n")
        elif what[0] == "large":
            response = Response(200, pattern(identifier, int(what[1])), kind="application/octet-stream")
            writer.write(response.head() + response.body)
        else:
            response = answer(200, {
                "id": identifier, "user": user, "upstream": self.name, "method": request.method,
                "target": request.target, "digest": hashlib.sha256(request.body).hexdigest()})
            writer.write(response.head() + (b"" if request.method == "HEAD" else response.body))
        await writer.drain()
        return True

    async def _fail(self, fault, writer):
        if fault == "error":
            response = answer(500, {"fault": fault})
        elif fault == "busy":
            response = answer(503, {"fault": fault}, ("Retry-After", "2"))
        elif fault == "hang":
            await self.fault_over.wait()
            return False
        elif fault == "cut":
            response = answer(200, {"fault": fault, "filling": "x" * 2000})
            writer.write(response.head() + response.body[:500])
            await writer.drain()
            await asyncio.sleep(0.05)
            _reset(writer)
            return False
        else:
            _reset(writer)
            return False
        writer.write(response.head() + response.body)
        await writer.drain()
        return True


def _reset(writer):
    """Ends the connection by RST."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
