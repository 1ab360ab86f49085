# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Installs an application: packages of Debian, packages of PyPI in an environment of the application's own; at most five minutes."""

import contextlib
import os
import re
import shutil
import subprocess

from processes import NotReady

MOST_SECONDS = 300
REPOSITORY = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
CACHE = os.path.join(REPOSITORY, ".build/farm")
# Debian asks this program if a package may start its service.
POLICY = "/usr/sbin/policy-rc.d"


def _run(command, text=None):
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    try:
        done = subprocess.run(
            ["nice", *command], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
            timeout=MOST_SECONDS, errors="replace")
    except subprocess.TimeoutExpired:
        raise NotReady(f"{command[0]} took longer than {MOST_SECONDS} s") from None
    if done.returncode != 0:
        raise NotReady(f"{' '.join(command[:3])}… ended with {done.returncode}: {done.stdout.strip()[-600:]}")
    return done.stdout


def _is_installed(package):
    asked = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True)
    return asked.stdout == "installed"


@contextlib.contextmanager
def _no_services():
    """While packages are installed, none of them starts a service."""
    mine = not os.path.exists(POLICY)
    if mine:
        with open(POLICY, "w") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(POLICY, 0o755)
    try:
        yield
    finally:
        if mine:
            os.unlink(POLICY)


def debian(packages, answers=()):
    """Packages of Debian, with answers to the questions that they would ask."""
    missing = [package for package in packages if not _is_installed(package)]
    if not missing:
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise NotReady(f"install by hand, or run this as root on Debian: {' '.join(missing)}")
    with _no_services():
        if answers:
            _run(["debconf-set-selections"], "\n".join(answers) + "\n")
        _run(["apt-get", "update", "-q"])
        _run(["apt-get", "install", "-q", "-y", "--no-install-recommends", *missing])


def pypi(name, requirements):
    """Packages of PyPI; returns the Python that has them."""
    folder = os.path.join(CACHE, name)
    python, done = os.path.join(folder, "venv/bin/python"), os.path.join(folder, "requirements.txt")
    wanted = "\n".join(requirements) + "\n"
    with contextlib.suppress(FileNotFoundError), open(done) as file:
        if file.read() == wanted:
            return python
    if not os.path.exists(python):
        debian(["python3-venv"])
        _run(["/usr/bin/python3", "-m", "venv", os.path.join(folder, "venv")])
    _run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements])
    with open(done, "w") as file:
        file.write(wanted)
    return python


def version(debian_packages, python, requirements):
    """The version of the first package, in Debian's spelling without its revision."""
    if requirements:
        package = requirements[0].split("=")[0].split("[")[0]
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        return _run([python, "-c", code]).strip()
    found = subprocess.run(
        ["dpkg-query", "-W", "-f", "${source:Upstream-Version}", debian_packages[0]], capture_output=True, text=True).stdout
    return re.split("[+~]", found)[0]
