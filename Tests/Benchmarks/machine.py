# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The machine of a run: its programs, and what belongs to the figures for them to mean anything."""

import os
import platform
import shutil
import subprocess
import tempfile

# Where `Tests/Scripts/setup bench` puts what Debian does not have.
TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.build/bench/python")


def program(name):
    """Its path; Debian keeps the servers' programs where a user's PATH does not look."""
    places = [os.environ.get("PATH", ""), "/usr/sbin", "/sbin", os.path.join(TOOLS, "envoy/_bin")]
    return shutil.which(name, path=":".join(places)) or name


def missing_programs():
    return [name for name in ("nginx", "wrk", "openssl") if not os.path.isabs(program(name))]


def describe(programs):
    """`programs`: those of the contestants, by name."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30):.0f} GiB",
        "load at the end": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        "libcurl": _first_line(["dpkg-query", "-W", "-f", "${Version}", "libcurl4"]),
        "wrk": _first_line([program("wrk"), "-v"]).split(" Copyright")[0],
        **{name: _version(name, path) for name, path in programs.items()},
    }


def stripped_bytes(binary):
    """The size of the daemon without its symbols, or None where nothing here can strip it."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as folder:
        copy = os.path.join(folder, "stripped")
        try:
            subprocess.run(["strip", "-o", copy, binary], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return os.path.getsize(copy)


def _version(name, path):
    argument = {"nginx": "-v", "haproxy": "-v", "caddy": "version"}.get(name, "--version")
    text = _first_line([path, argument])
    return text.removeprefix("nginx version: ").rpartition("version: ")[2].removeprefix("HAProxy version ").split(" - ")[0]


def _processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=10)
        return next((line.strip() for line in done.stdout.splitlines() if line.strip()), "unknown")
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
