# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Callers of the daemon on connections that they keep; each knows the one right answer to what it asks."""

import asyncio
import hashlib
import json
import random
import time
from collections import Counter
from dataclasses import dataclass

from server import pattern

SECONDS = 45


@dataclass
class Outcome:
    """A request that did not get the right answer; for the oracles to judge."""
    upstream: str
    method: str
    identifier: str
    began: float
    ended: float
    status: int
    code: str
    detail: str = ""


class Ended(Exception):
    """The connection ended before the response did."""


@dataclass
class Plan:
    """A request, and what is to come back."""
    upstream: str
    user: str
    method: str
    path: str
    identifier: str
    body: bytes = b""
    is_chunked: bool = False

    def head(self):
        fields = ["Host: localhost", f"X-Soak-Id: {self.identifier}"]
        if self.is_chunked:
            fields.append("Transfer-Encoding: chunked")
        elif self.method == "POST":
            fields.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([f"{self.method} /{self.upstream}{self.path} HTTP/1.1", *fields, "", ""]).encode()

    def wire(self):
        if not self.is_chunked:
            return self.head() + self.body
        pieces = [self.body[place:place + 9000] for place in range(0, len(self.body), 9000)]
        return self.head() + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"

    def fault_of(self, fields, body):
        """What is wrong with a 200, or nothing."""
        what = self.path.split("/")
        for name in ("set-cookie", "www-authenticate"):
            if name in fields:
                return f"{name} reached the caller"
        if what[1] == "stream":
            right = "".join(f"data: {self.identifier} {number}\n\n" for number in range(int(what[2]))).encode()
            return None if body == right else "the stream is not what was sent"
        if what[1] == "large":
            return None if body == pattern(self.identifier, int(what[2])) else "the body is not what was sent"
        try:
            given = json.loads(body)
        except ValueError:
            return f"no JSON: {body[:100]!r}"
        right = {
            "id": self.identifier, "user": self.user, "upstream": self.upstream, "method": self.method, "target": self.path,
            "digest": hashlib.sha256(self.body).hexdigest()}
        return None if given == right else f"{given} in place of {right}"


class Callers:
    """So many callers, who together make `rate` requests a second."""

    def __init__(self, port, users, seed, count=200, rate=300):
        self.port, self.users, self.count, self.rate = port, users, count, rate
        self.random = random.Random(seed)
        self.counts = Counter()
        self.by_upstream = Counter()
        self.succeeded_posts = []
        self.failed_posts = []
        self.outcomes = []
        self.findings = []
        self.latencies = []
        self.is_over = False
        self.serial = 0
        self._connections = set()

    async def ask_once(self, upstream, method):
        """One request on a connection of its own."""
        self.serial += 1
        identifier = f"{upstream}-{self.serial}"
        body = pattern(identifier, 100) if method == "POST" else b""
        plan = Plan(upstream, self.users[upstream], method, f"/item/{self.serial}", identifier, body)
        self._close(await self._ask(plan, None))

    def plan(self):
        self.serial += 1
        upstream = self.random.choice(list(self.users))
        identifier = f"{upstream}-{self.serial}"
        user, draw = self.users[upstream], self.random.random()
        path = f"/item/{self.serial}?a=%20{self.serial % 7}"
        if upstream == "plain" and draw < 0.1:
            return Plan(upstream, user, "GET", f"/large/{self.random.choice([70_000, 300_000, 1_000_000])}", identifier)
        if upstream == "plain" and draw < 0.14:
            return Plan(upstream, user, "GET", f"/stream/{self.random.randint(5, 40)}", identifier)
        if draw > 0.7:
            length = self.random.choice([0, 20, 500, 20_000] if draw < 0.97 else [100_000, 400_000])
            body = pattern(identifier, length)
            return Plan(upstream, user, "POST", path, identifier, body, is_chunked=length > 0 and self.random.random() < 0.3)
        return Plan(upstream, user, "GET", path, identifier)

    async def run(self):
        async with asyncio.TaskGroup() as group:
            for _ in range(self.count):
                group.create_task(self._caller())

    async def _caller(self):
        connection = None
        await asyncio.sleep(self.random.random())
        while not self.is_over:
            connection = await self._ask(self.plan(), connection)
            await asyncio.sleep(self.random.uniform(0.5, 1.5) * self.count / self.rate)
        self._close(connection)

    async def _ask(self, plan, connection):
        """Asks once, or again where a connection at rest had ended; the connection that goes on, or None."""
        began = time.time()
        self.counts["requests"] += 1
        self.by_upstream[plan.upstream] += 1
        if connection is not None and connection[0].at_eof():
            self._close(connection)
            connection = None
            self.counts["connections ended at rest"] += 1
        for _ in range(3):
            is_reused = connection is not None
            received = [0]
            try:
                connection = connection or await self._connect()
                status, fields, body = await asyncio.wait_for(self._exchange(plan, connection, received), SECONDS)
                self._judge(plan, began, status, fields, body)
                if fields.get("connection", "").lower() != "close":
                    return connection
                self._close(connection)
                return None
            except TimeoutError:
                error, code = "no whole response in time", "caller-timeout"
            except (OSError, Ended, asyncio.IncompleteReadError) as problem:
                error, code = repr(problem), "cut" if received[0] else "ended"
            self._close(connection)
            connection = None
            if not (is_reused and code == "ended" and plan.method == "GET"):
                break
            self.counts["asked again"] += 1
        self._note(plan, began, 0, code, error)
        return None

    async def _connect(self):
        connection = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        self._connections.add(connection[1])
        self.counts["connections"] += 1
        return connection

    def _close(self, connection):
        if connection:
            self._connections.discard(connection[1])
            connection[1].close()

    async def _exchange(self, plan, connection, received):
        reader, writer = connection
        writer.write(plan.wire())
        head = await reader.readuntil(b"\r\n\r\n")
        received[0] = len(head)
        line, *rest = head.decode("latin-1").split("\r\n")
        fields = {}
        for text in rest:
            name, colon, value = text.partition(":")
            if colon:
                fields[name.lower()] = value.strip()
        if fields.get("transfer-encoding") == "chunked":
            pieces = []
            while size := int(await reader.readuntil(b"\r\n"), 16):
                pieces.append(await reader.readexactly(size))
                await reader.readexactly(2)
            await reader.readuntil(b"\r\n")
            return int(line.split()[1]), fields, b"".join(pieces)
        if "content-length" not in fields:
            raise Ended("a response without a length")
        return int(line.split()[1]), fields, await reader.readexactly(int(fields["content-length"]))

    def _judge(self, plan, began, status, fields, body):
        if status != 200:
            code = detail = ""
            if "problem+json" in fields.get("content-type", ""):
                problem = json.loads(body)
                code, detail = problem.get("code", problem.get("type", "")), problem.get("detail", "")
            else:
                code, detail = f"upstream {status}", body[:120].decode("latin-1")
            self._note(plan, began, status, code, detail)
            return
        if fault := plan.fault_of(fields, body):
            self.findings.append(f"a wrong answer to {plan.method} {plan.identifier}: {fault}")
        self.counts["answered"] += 1
        self.latencies.append(time.time() - began)
        if plan.method == "POST":
            self.succeeded_posts.append((plan.upstream, plan.identifier))

    def _note(self, plan, began, status, code, detail):
        self.counts["failed"] += 1
        self.outcomes.append(
            Outcome(plan.upstream, plan.method, plan.identifier, began, time.time(), status, code,
                    f"{detail} ({len(plan.body)} bytes{' in chunks' if plan.is_chunked else ''})"[:400]))
