# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The library of `faults.c`: builds and preloads it, sets the call that fails, and reads its log."""

import collections
import errno
import mmap
import os
import struct
import subprocess
from dataclasses import dataclass

PAGE = struct.Struct("IIIII44s")
ARMED, FIRED = 0, 12


def build(folder):
    """The compiled library."""
    library = os.path.join(folder, "faults.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "faults.c")
    subprocess.run(
        [os.environ.get("CC", "cc"), "-O2", "-g", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-o", library, source], check=True)
    return library


@dataclass(frozen=True)
class Call:
    """A counted call: the nth of that name, at a place in the program."""
    name: str
    number: int
    site: str = ""
    frames: tuple = ()

    def __str__(self):
        return f"{self.name}:{self.number}"


class Faults:
    """The control page and the log of one run. `target`: the call that fails, or None to write all calls to the log."""

    def __init__(self, library, binary, folder, target=None, lasting=False, error=""):
        self.library, self.binary, self.lasting = library, binary, lasting
        # The number of an error, or `short`.
        self.error = str(getattr(errno, error, error))
        self.path, self.log = os.path.join(folder, "page"), os.path.join(folder, "calls")
        name, number = (target.name.encode(), target.number) if target else (b"", 0)
        with open(self.path, "wb") as file:
            file.write(PAGE.pack(0, number, int(lasting), 0, int(target is None), name).ljust(4096, b"\0"))
        with open(self.path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 4096)

    @property
    def environment(self):
        """The environment that the program needs. Its child processes inherit it, and are not counted."""
        return {
            "LD_PRELOAD": self.library, "TORTURE_PAGE": self.path, "TORTURE_LOG": self.log,
            "TORTURE_PROGRAM": os.path.realpath(self.binary), "TORTURE_ERROR": self.error}

    def arm(self, isArmed=True):
        """From now on calls count, until `disarm`."""
        self.page[ARMED:ARMED + 4] = struct.pack("I", int(isArmed))

    def disarm(self):
        self.arm(False)

    @property
    def fired(self):
        """The number of failed calls."""
        return struct.unpack("I", self.page[FIRED:FIRED + 4])[0]

    def close(self):
        self.page.close()

    def calls(self):
        """The calls in the log."""
        if not os.path.exists(self.log):
            return []
        with open(self.log, errors="replace") as file:
            words = [line.split() for line in file]
        return [Call(w[0], int(w[1]), w[3], tuple(w[4:])) for w in words if len(w) > 4]


def chosen(calls, limit):
    """At most `limit` of the calls, evenly spread over the run: each place once before any comes twice, in the order of the run."""
    by_site = collections.defaultdict(list)
    for call in calls:
        by_site[call.site].append(call)
    rounds = sorted(
        ((turn, order, call) for order, of_site in enumerate(by_site.values()) for turn, call in enumerate(of_site)),
        key=lambda entry: entry[:2])
    order = [call for _, _, call in rounds]
    if limit and limit < len(by_site):
        step = len(by_site) / limit
        return [order[int(index * step)] for index in range(limit)]
    return order[:limit or None]


def places(binary, frames):
    """The lines of source of those frames that are the program's own; their functions if it was built without debug information."""
    own = os.path.basename(binary) + "+"
    offsets = [hex(int(frame.split("+")[1], 16) - 1) for frame in frames if frame.startswith(own)]
    if not offsets:
        return []
    found = _output(["addr2line", "-f", "-e", binary, *offsets]).split("\n")
    pairs = list(zip(found[::2], found[1::2]))
    lines = [line.split("/Sources/")[-1].split(" ")[0] for _, line in pairs if "/Sources/" in line]
    names = [name for name, _ in pairs if not name.startswith("?")]
    if lines or not names:
        return lines
    return _output(["swift", "demangle", "--compact", *names]).split("\n")[:-1]


def _output(command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
