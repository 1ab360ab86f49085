# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Child processes of the farm: each in a session of its own, ended by its id, and by the kernel when the runner dies."""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import time


class NotReady(Exception):
    """A program did not start, or a step of its preparation failed."""


_ports = iter(range(10_000 + os.getpid() * 37 % 15_000, 32_000))


def free_port():
    """A port of loopback that nobody listens on, below those that the system hands out to connections."""
    for port in _ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise NotReady("no free port")


class Child:
    """A server that runs until `stop`, with its output in a file."""

    def __init__(self, command, folder, environment=None, name="server"):
        self.log = os.path.join(folder, f"{name}.log")
        bound = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(
                bound + [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder,
                env=dict(os.environ, **(environment or {})), start_new_session=True)

    def stop(self):
        """Ends the server and what it started, which is in its process group."""
        for kind, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, kind)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)

    def last_words(self):
        with open(self.log, errors="replace") as file:
            return file.read()[-2000:].strip()

    def wait_until_it_answers(self, port, path="/", seconds=60):
        """Waits until the server answers a GET with less than 500."""
        end = time.monotonic() + seconds
        said = "nothing listens"
        while time.monotonic() < end and self.process.poll() is None:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.request("GET", path)
                said = connection.getresponse().status
                connection.close()
                if said < 500:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.1)
        raise NotReady(f"no answer at port {port} within {seconds} s ({said})\n{self.last_words()}")

    def wait_until_it_listens(self, address, seconds=60):
        """Waits for a server that does not speak HTTP: a port, or the path of a Unix socket."""
        end = time.monotonic() + seconds
        family, target = (socket.AF_UNIX, address) if isinstance(address, str) else (socket.AF_INET, ("127.0.0.1", address))
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket(family) as probe, contextlib.suppress(OSError):
                probe.connect(target)
                return
            time.sleep(0.1)
        raise NotReady(f"nothing listens at {address} after {seconds} s\n{self.last_words()}")


def run(command, folder, environment=None, text=None, seconds=60):
    """Runs a command to its end and returns what it printed."""
    try:
        done = subprocess.run(
            [str(word) for word in command], cwd=folder, env=dict(os.environ, **(environment or {})), input=text,
            stdin=None if text is not None else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=seconds, errors="replace")
    except subprocess.TimeoutExpired:
        raise NotReady(f"{command[0]} took longer than {seconds} s") from None
    if done.returncode != 0:
        raise NotReady(f"{' '.join(str(word) for word in command[:4])}… ended with {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout
