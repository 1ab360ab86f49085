# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The daemon, and as much of a service manager as it needs: its listening socket, its notifications, its stored sessions."""

import asyncio
import fcntl
import os
import signal
import socket
import time


class DaemonError(Exception):
    """The daemon did not do what it was told."""


class Manager:
    def __init__(self, binary, folder, config):
        self.binary, self.folder, self.config = binary, folder, config
        self.pid = None
        self.started_at = 0
        self.ended = []
        self.stored = {}
        self.log = os.path.join(folder, "daemon.log")
        self._states = asyncio.Queue()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self._listener.getsockname()[1]
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(os.path.join(folder, "notify"))
        self._notify.setblocking(False)
        for name in ("state", "run"):
            os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)
        asyncio.get_running_loop().add_reader(self._notify, self._receive)

    def _receive(self):
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._notify, 65536, 16)
            except BlockingIOError:
                return
            states = dict(line.split("=", 1) for line in data.decode().split("\n") if "=" in line)
            name = states.get("FDNAME")
            if "FDSTORE" in states and descriptors:
                self.stored.setdefault(name, []).extend(descriptors)
            else:
                # Those of a barrier: their end tells the daemon that everything was read.
                for descriptor in descriptors:
                    os.close(descriptor)
            if "FDSTOREREMOVE" in states:
                for descriptor in self.stored.pop(name, []):
                    os.close(descriptor)
            if "READY" in states or "RELOADING" in states:
                self._states.put_nowait(states)

    async def start(self):
        """Starts it with the socket and with what was stored, and waits until it is ready."""
        passed = [("http", self._listener.fileno())]
        passed += [(name, number) for name, numbers in self.stored.items() for number in numbers]
        # Out of the way of the numbers that they get.
        copies = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 100) for _, number in passed]
        actions = [(os.POSIX_SPAWN_DUP2, copy, 3 + index) for index, copy in enumerate(copies)]
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        actions += [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
        environment = {
            "PATH": os.environ["PATH"], "STATE_DIRECTORY": os.path.join(self.folder, "state"),
            "RUNTIME_DIRECTORY": os.path.join(self.folder, "run"), "NOTIFY_SOCKET": os.path.join(self.folder, "notify"),
            "LISTEN_FDS": str(len(passed)), "LISTEN_FDNAMES": ":".join(name for name, _ in passed)}
        command = ["sh", "-c", 'LISTEN_PID=$$ exec "$0" "$@"', self.binary, "serve", "--config", self.config]
        while not self._states.empty():
            self._states.get_nowait()
        self.pid = os.posix_spawn("/bin/sh", command, environment, file_actions=actions)
        for descriptor in [*copies, log]:
            os.close(descriptor)
        await self._wait_for("READY", 30)
        self.started_at = time.time()

    async def _wait_for(self, word, seconds):
        end = time.monotonic() + seconds
        while True:
            try:
                states = await asyncio.wait_for(self._states.get(), min(0.5, max(0.01, end - time.monotonic())))
            except TimeoutError:
                if self.has_ended():
                    raise DaemonError(f"it ended instead of {word}: {self.ended[-1]}") from None
                if time.monotonic() >= end:
                    raise DaemonError(f"no {word} within {seconds} s") from None
                continue
            if word in states:
                return states

    def has_ended(self):
        if self.pid is not None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.ended.append(os.waitstatus_to_exitcode(status))
                self.pid = None
        return self.pid is None

    async def stop(self, number=signal.SIGTERM, seconds=40):
        """Ends it; how many seconds that took."""
        begin = time.monotonic()
        os.kill(self.pid, number)
        while not self.has_ended():
            if time.monotonic() - begin > seconds:
                raise DaemonError(f"it did not end within {seconds} s")
            await asyncio.sleep(0.02)
        expected = -number if number == signal.SIGKILL else 0
        if self.ended[-1] != expected:
            raise DaemonError(f"it ended with {self.ended[-1]}")
        self._receive()
        return time.monotonic() - begin

    async def reload(self):
        """Has it read its configuration again; its state in a sentence, afterwards."""
        os.kill(self.pid, signal.SIGHUP)
        await self._wait_for("RELOADING", 15)
        return (await self._wait_for("READY", 15)).get("STATUS", "")

    async def command(self, *arguments):
        """Runs a command of the program; its exit status and what it printed."""
        process = await asyncio.create_subprocess_exec(
            self.binary, *arguments, "--config", self.config, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
        output, _ = await process.communicate()
        return process.returncode, output.decode().strip()
