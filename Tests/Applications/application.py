# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""An application of the farm: each file of `apps` defines one, and overrides what differs."""

import base64
import os
import re

import install
import processes
from processes import NotReady


class Application:
    # For people, and how one logs in: "Basic", "form", "JSON".
    title = ""
    login = ""
    # Packages of Debian, answers to their questions, packages of PyPI.
    debian = []
    answers = []
    pypi = []
    # Among the few that are run often: it starts in seconds.
    quick = False
    # Among the dozen whose configuration docs/applications.md shows, each with another kind of login.
    documented = False
    # The fields of the credential. The name stands in the credential only if it is sent.
    username = "ann"
    password = "Right-horse-7"
    wrong_password = "Wrong-horse-7"
    fields = ["username", "password"]
    # Those with values of their own.
    more_fields = {}
    # `upstreams` and `challenges`, as they stand in a configuration for https://NAME.example.com.
    configuration = ""
    # What is asked: a page for users, and text that only a user's has.
    page = ("/", "")
    # The largest number of logins for 20 cold requests at once.
    burst_logins = 1
    # The address that `countersign learn` is given; `None`: that page.
    learned_at = None
    # A page for everybody, and text of it; or the reason why there is none.
    open_page = "every page asks for the login"
    # What a check needs that the configuration cannot say, by the check's letter.
    needs = {}
    # The reasons why a check is not for this application, by its letter.
    not_for = {}

    def __init__(self, folder):
        self.folder, self.children = folder, []
        self.port = processes.free_port()
        # The port that Countersign asks: the tap's. Set before `start`.
        self.public_port = None
        self.python = None

    @property
    def name(self):
        return type(self).__module__.removeprefix("apps.")

    @property
    def is_scheme(self):
        """An authentication scheme of HTTP, whose credential goes with each request."""
        return "scheme:" in self.configuration

    # Taps before other servers to which Countersign sends something.
    taps = []

    @property
    def addresses(self):
        """The addresses in the configuration, and those that take their place."""
        return {f"https://{self.name}.example.com": f"http://127.0.0.1:{self.public_port}"}

    @property
    def sends_basic(self):
        """A login that is described, but by Basic."""
        return "{base64:username:password}" in self.configuration

    @property
    def carries_password(self):
        """Each request carries it, so that the wire does not tell logins from requests."""
        return self.is_scheme or "{base64:username:password}" in self.configuration.partition("inject:")[2]

    def localized(self, text):
        """The configuration for this machine, where it names something else than the application's address."""
        return text

    def install(self):
        install.debian(self.debian, self.answers)
        if self.pypi:
            self.python = install.pypi(self.name, self.pypi)

    def version(self):
        return install.version(self.debian, self.python, self.pypi)

    def prepare(self):
        """What is done once, before the first start."""

    def start(self):
        """Starts the application and waits until it answers."""
        raise NotImplementedError

    def end_sessions(self):
        """Ends all sessions at the server."""
        raise NotImplementedError

    def write(self, caller):
        """A request that changes something; returns the answer. Raises `AssertionError` if nothing was changed."""
        raise NotImplementedError

    def ask(self, caller):
        """Asks for the page for users."""
        return caller.get(self.page[0])

    def recording(self):
        """The path of a browser's recording of a login, for `learn`; `None`: it needs none."""
        return None

    def attempt(self, password):
        """What stands in the bytes to the server for each time that the password was sent."""
        if self.is_scheme:
            return rb"(?i)\r\nauthorization: "
        return re.escape(base64.b64encode(f"{self.username}:{password}".encode()) if self.sends_basic else password.encode())

    # Helpers of the applications

    @property
    def is_root(self):
        return os.geteuid() == 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, text, mode=0o600):
        """Writes a file in the application's folder; returns its path."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def folder_for_all(self, name):
        """A folder that a server can use which gives up root."""
        os.chmod(self.folder, 0o755)
        os.makedirs(self.path(name), exist_ok=True)
        os.chmod(self.path(name), 0o777)

    def run(self, *command, text=None, environment=None, seconds=60):
        return processes.run(command, self.folder, environment, text, seconds)

    def serve(self, *command, environment=None, name="server", answers="/"):
        """Starts a server; `answers` is the path that it answers when it is ready, `None`: nobody waits."""
        child = processes.Child(command, self.folder, environment, name)
        self.children.append(child)
        if answers is not None:
            child.wait_until_it_answers(self.port, answers)
        return child

    def stop(self):
        while self.children:
            self.children.pop().stop()

    def restart(self):
        """For applications whose sessions live in memory."""
        self.stop()
        self.start()


__all__ = ["Application", "NotReady"]
