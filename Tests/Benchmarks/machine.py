# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The machine of a run: its programs, and what belongs to the figures for them to mean anything."""

import os
import platform
import shutil
import subprocess


def program(name):
    """Its path; Debian keeps the servers' programs where a user's PATH does not look."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or name


def missing_programs():
    return [name for name in ("nginx", "wrk") if not os.path.isabs(program(name))]


def describe(binary):
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_at_end": os.getloadavg()[0],
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        "countersign": _first_line([binary, "--version"]),
        "libcurl": _package("libcurl4"),
        "nginx": _first_line([program("nginx"), "-v"]).removeprefix("nginx version: "),
        "wrk": _first_line([program("wrk"), "-v"]).split(" Copyright")[0],
    }


def _processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=10)
        return (done.stdout.splitlines() or ["unknown"])[0].strip()
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


def _package(name):
    return _first_line(["dpkg-query", "-W", "-f", "${Version}", name])
