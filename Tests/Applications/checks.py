# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""What is asked of each application through Countersign."""

import http.client
import os
import threading
from dataclasses import dataclass

from daemon import Daemon
from web import Caller

TITLES = {
    "open": "a page for everybody needs no login",
    "cold": "a cold GET of a page for users gets the user's page",
    "burst": "20 cold GETs at once cause one login",
    "write": "a request that changes something is carried out",
    "ended": "after the server ended the session, the next GET logs in once",
    "wrong": "a wrong password is sent once; then the latch answers",
}


@dataclass
class Outcome:
    # `passed`, `failed`, or `none`: not for this application.
    state: str
    # What was seen, and what the configuration lacks for it, if the application's file knows.
    reason: str = ""
    need: str = ""


class Taps:
    """The tap before an application, and those before others that it needs."""

    def __init__(self, application, first):
        self.application, self.first = application, first

    def clear(self):
        for each in (self.first, *self.application.taps):
            each.clear()

    def count(self, pattern):
        return sum(each.count(pattern) for each in (self.first, *self.application.taps))


class Checks:
    """The checks of one application that runs, with the tap before it."""

    def __init__(self, application, tap, binary):
        self.application, self.tap, self.binary, self.outcomes, self.number = application, Taps(application, tap), binary, {}, 0

    def all(self):
        with self._daemon() as daemon:
            self._check("open", self._open, daemon)
            self._check("cold", self._cold, daemon)
        with self._daemon() as daemon:
            self._check("burst", self._burst, daemon)
            self._check("write", self._write, daemon)
            self._check("ended", self._ended, daemon)
        with self._daemon(self.application.wrong_password) as daemon:
            self._check("wrong", self._wrong, daemon)
        return {name: self.outcomes[name] for name in TITLES}

    def _daemon(self, password=None):
        self.number += 1
        folder = os.path.join(self.application.folder, f"countersign-{self.number}")
        self.tap.clear()
        return Daemon(self.binary, self.application, folder, password)

    def _check(self, name, check, daemon):
        application = self.application
        reason = application.not_for.get(name)
        if name == "open" and isinstance(application.open_page, str):
            reason = application.open_page
        if reason is not None:
            self.outcomes[name] = Outcome("none", reason)
            return
        try:
            check(daemon)
            self.outcomes[name] = Outcome("passed")
        except (AssertionError, OSError, http.client.HTTPException) as error:
            told = str(error) or type(error).__name__
            self.outcomes[name] = Outcome("failed", told, application.needs.get(name, ""))

    def _is_users(self, answer):
        is_right = answer.status == 200 and self.application.page[1] in answer.text
        if not is_right:
            # To be read after a run with --keep.
            with open(self.application.path(f"answer-{self.number}"), "wb") as file:
                file.write(answer.body)
        assert is_right, f"the answer is {answer}" + (", not the user's page" if answer.status == 200 else "")

    def _logins(self, daemon):
        """Logins since the tap was cleared: by the wire for a password that is sent once, else by the metrics."""
        if self.application.carries_password:
            return daemon.logins()
        return self.tap.count(self.application.attempt(self.application.password))

    def _open(self, daemon):
        path, text = self.application.open_page
        answer = Caller(daemon.port).get(path)
        assert answer.status == 200 and text in answer.text, f"the answer is {answer}"
        logins = self._logins(daemon)
        assert logins == 0, f"{logins} logins"

    def _cold(self, daemon):
        self._is_users(self.application.ask(Caller(daemon.port)))

    def _burst(self, daemon):
        answers = []

        def ask():
            answers.append(self.application.ask(Caller(daemon.port)))

        threads = [threading.Thread(target=ask, daemon=True) for _ in range(20)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
        assert len(answers) == 20, f"{len(answers)} of 20 were answered"
        for each in answers:
            self._is_users(each)
        logins = self._logins(daemon)
        assert 1 <= logins <= self.application.burst_logins, f"{logins} logins"

    def _write(self, daemon):
        answer = self.application.write(Caller(daemon.port))
        assert answer.status < 400, f"the answer is {answer}"

    def _ended(self, daemon):
        caller = Caller(daemon.port)
        self._is_users(self.application.ask(caller))
        self.application.end_sessions()
        self.tap.clear()
        before = daemon.logins() if self.application.carries_password else 0
        self._is_users(self.application.ask(caller))
        logins = self._logins(daemon) - before
        assert logins == 1, f"{logins} logins"

    def _wrong(self, daemon):
        cold = self.outcomes.get("cold")
        assert cold is None or cold.state == "passed", "the right one does not log in either"
        codes = []
        for _ in range(5):
            answer = self.application.ask(Caller(daemon.port))
            codes.append(answer.code or str(answer))
        times = self.tap.count(self.application.attempt(self.application.wrong_password))
        assert codes == ["login-rejected"] + ["login-latched"] * 4, f"the answers are {', '.join(dict.fromkeys(codes))}"
        assert times == 1, f"sent {times} times"
