# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Processes of our own: started, read in /proc, ended by their id."""

import os
import socket
import subprocess
import time
from dataclasses import dataclass

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Usage:
    """CPU time in seconds; `user` and `system` only to a hundredth."""
    user: float
    system: float
    total: float

    def __sub__(self, other):
        return Usage(self.user - other.user, self.system - other.system, self.total - other.total)


class Server:
    """A server and the processes that it started."""

    def __init__(self, command, log, environment=None):
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)

    def tree(self):
        """Its id and those of all its descendants."""
        parents = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                fields = stat_fields(int(name))
                if fields:
                    parents.setdefault(int(fields[1]), []).append(int(name))
        found = [self.process.pid]
        for pid in found:
            found += parents.get(pid, [])
        return found

    def usage(self):
        """The CPU time of all of them until now: the sum in nanoseconds' grain, shared out by the ticks of user and system."""
        user = system = total = 0
        for pid in self.tree():
            fields = stat_fields(pid)
            if fields:
                user += int(fields[11])
                system += int(fields[12])
                total += nanoseconds(pid) or (int(fields[11]) + int(fields[12])) * 1e9 / TICKS
        return Usage(user / TICKS, system / TICKS, total / 1e9)

    def resident_kib(self, pids=None):
        """What all of them hold in memory. Pages that several share count for each of them. `pids`: the tree, if known."""
        total = 0
        for pid in pids or self.tree():
            try:
                with open(f"/proc/{pid}/status") as file:
                    total += sum(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
            except OSError:
                pass
        return total

    def anonymous_bytes(self):
        """What all of them hold in memory that no file backs."""
        total = 0
        for pid in self.tree():
            try:
                with open(f"/proc/{pid}/status") as file:
                    total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))
            except OSError:
                pass
        return total

    def has_ended(self):
        return self.process.poll() is not None

    def last_words(self):
        with open(self.log, errors="replace") as file:
            return file.read()[-2000:].strip()

    def end(self):
        if self.has_ended():
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        """Ends all of them at once. A tracer would wait for what it traces."""
        for pid in reversed(self.tree()):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        self.process.wait()


def stat_fields(pid):
    """The fields of proc(5) stat behind the name, which may hold anything: state is 0, ppid 1, utime 11, stime 12."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def nanoseconds(pid):
    """On a processor until now, of all its threads, those that have ended too: the ticks of stat are too coarse for a second's work."""
    try:
        # The clock of another process, as clock_getcpuclockid(3) makes its number.
        return time.clock_gettime_ns(~pid << 3 | 2)
    except OSError:
        return 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds):
    """Whether `condition` came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.002)
    return False
