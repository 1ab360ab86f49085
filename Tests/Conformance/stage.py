# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Lanes, and the proxies under test. A lane is a listener of the proxy with a scripted upstream of its own: every request
that reaches this upstream belongs to the one case that runs on the lane."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

import configurations
from upstream import Upstream

# How many lanes of each kind. `timeout`: the upstream may take one second; `dead`: there is none; `long`: for cases
# that wait for a time limit of the proxy; `stay`: for those that need the proxy to reuse its connections.
KINDS = {"plain": int(os.environ.get("CONFORMANCE_LANES", "10")), "long": 3, "timeout": 2, "dead": 1}


class NotReady(Exception):
    """A proxy did not come up."""


@dataclass
class Lane:
    kind: str
    address: tuple
    upstream: object


@dataclass
class Target:
    name: str
    # True if it makes countersign's promises besides the standard's.
    contract: bool
    lanes: list = field(default_factory=list)
    # Its process, where we have started it.
    process: object = None


class _Dead:
    """A port without a listener, reserved so that no other process takes it."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self._upstream = None

    def begin(self, replies, sticky):
        from upstream import Script
        return Script(replies, sticky)

    def stop(self):
        self.socket.close()


@contextlib.contextmanager
def started(name, binary=None):
    """A proxy of ours with its lanes: countersign, nginx or haproxy."""
    with contextlib.ExitStack() as ends:
        folder = tempfile.mkdtemp(prefix=f"conformance-{name}-")
        ends.callback(shutil.rmtree, folder, ignore_errors=True)
        target = Target(name, name == "countersign")
        for kind, count in KINDS.items():
            for _ in range(count):
                upstream = _Dead() if kind == "dead" else Upstream()
                ends.callback(upstream.stop)
                target.lanes.append(Lane(kind, ("127.0.0.1", _free_port()), upstream))
        command, environment = configurations.write(name, binary, folder, target.lanes)
        target.process = ProxyProcess(name, command, environment, folder, target.lanes)
        ends.callback(target.process.stop)
        target.process.start()
        yield target


@contextlib.contextmanager
def running(address, upstream_port, contract):
    """One lane through a proxy that is running already."""
    host, _, port = address.rpartition(":")
    upstream = Upstream(upstream_port)
    try:
        yield Target(address, contract, [Lane("plain", (host or "127.0.0.1", int(port)), upstream)])
    finally:
        upstream.stop()


_handed_out = set()


def _free_port():
    """A port outside of the range from which the system chooses, if there is one."""
    start = 10_000 + os.getpid() * 37 % 20_000
    for port in range(start, start + 2_000):
        if port in _handed_out:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            _handed_out.add(port)
            return port
    raise NotReady("no free port")


class ProxyProcess:
    """The proxy, started again after a breakdown."""

    def __init__(self, name, command, environment, folder, lanes):
        self.name, self.command, self.environment, self.folder, self.lanes = name, command, environment, folder, lanes
        self.log, self.process = os.path.join(folder, "output"), None

    def start(self):
        # It dies with the thread that starts it first, which is the main one.
        bound = ["setpriv", "--pdeathsig", "KILL", "--"] if self.process is None and shutil.which("setpriv") else []
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(
                bound + self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self.environment,
                cwd=self.folder)
        for lane in self.lanes:
            self._wait_until_listening(lane.address)

    def has_died(self):
        return self.process.poll() is not None

    def last_words(self):
        with open(self.log, errors="replace") as file:
            return file.read()[-3000:].strip()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        kept = os.environ.get("CONFORMANCE_KEEP_LOG")
        if kept:
            shutil.copy(self.log, kept)

    def _wait_until_listening(self, address):
        end = time.monotonic() + 20
        while time.monotonic() < end and not self.has_died():
            with contextlib.suppress(OSError), socket.create_connection(address, timeout=1):
                return
            time.sleep(0.02)
        raise NotReady(f"{self.name} does not listen at {address[0]}:{address[1]}\n{self.last_words()}")
