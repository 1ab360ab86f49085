# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The common parts of all scenarios: preparation, actions while calls count, and the promises that must hold after any fault."""

import hashlib
import re

from stage import BOUND, until

BODY = bytes(range(256)) * 1200
SLOW = 3.0
# RestartPreventExitStatus= of the unit.
FINAL = {64, 78}
FILE_CALLS = {
    "open", "write", "fsync", "rename", "fchown", "realpath", "opendir", "stat", "fstat", "mkdir", "link", "unlink", "mlock",
    "openat", "renameat", "fdopendir", "fstatat", "mkdirat", "linkat", "unlinkat", "readlinkat",
}


class Scenario:
    """A daemon that runs before calls count. Findings are (severity, sentence): 1 breaks a promise, 2 an end or a hang, 3 is unclear."""

    first_password = "demo"
    # False for one that chooses the moment itself.
    arms_at_once = True

    def __init__(self, stage):
        self.stage, self.findings = stage, []
        self.upstream = stage.upstream
        stage.variables["COUNTERSIGN_ANN__PASSWORD"] = self.first_password

    def find(self, severity, text):
        self.findings.append((severity, text))

    def prepare(self):
        if problem := self.stage.start():
            raise RuntimeError(f"no start without a fault: {problem}")
        # It listens before its start is over, and what fails in its start ends it.
        until(lambda: " ready " in self.stage.read(self.stage.log))

    def act(self):
        raise NotImplementedError

    def check(self):
        """Checks this scenario's own promises."""

    def run(self):
        """All of it, and the general promises."""
        self.prepare()
        if self.arms_at_once:
            self.stage.faults.arm()
        self.act()
        self.stage.faults.disarm()
        self.check_process()
        self.check_answers()
        self.check()
        self.recover()
        self.check_upstream()
        return self.findings

    def messages(self):
        """Returns the program's messages about trouble: its log from `warning` on, and output that is not a log."""
        text = "".join(self.stage.read(f"log-{number}") for number in range(1, self.stage.starts + 1)) + self.stage.read("errors")
        return [line for line in text.split("\n") if line and not re.match(r"^\S+Z (?:notice|info|debug) ", line)]

    def notices(self):
        return "".join(self.stage.read(f"log-{number}") for number in range(1, self.stage.starts + 1))

    def check_process(self):
        code = self.stage.process.poll()
        if code is not None and code < 0:
            self.find(2, f"ended by signal {-code}: {self.last_words()}")
        elif code is not None:
            self.find(2, f"the daemon ended with {code}: {self.last_words()}")

    def check_start(self, problem):
        """A start that fails says why, and lets the manager try again."""
        code = self.stage.process.poll()
        if problem.startswith("hangs"):
            self.find(2, f"{problem}: {self.last_words()}")
        elif code is not None and code < 0:
            self.find(2, f"ended by signal {-code}: {self.last_words()}")
        elif code == 0:
            self.find(2, "ended with 0 though it could not start")
        elif code is not None and self.last_words() == "no words":
            self.find(3, f"ended with {code} without a message")
        elif code is not None and " ready " in self.stage.read(self.stage.log):
            self.find(2, f"ended with {code} after it was ready, without a drain: {self.last_words()}")
        elif code in FINAL:
            self.find(2, f"ended with {code}, after which systemd does not start it again: {self.last_words()}")

    def last_words(self):
        log = self.stage.read(self.stage.log) if self.stage.log else ""
        lines = [line for line in (log + self.stage.read("errors")).split("\n") if line]
        return " | ".join(lines[-3:])[:400] or "no words"

    def check_answers(self):
        for request, answer in self.stage.answers:
            if answer.status == 0 and not self.stage.faults.fired:
                self.find(1, f"{request} has no answer though nothing failed ({answer.fault})")
            if answer.fault == "timeout" and not (self.stage.faults.lasting and self.is_accept() and until(self.messages, 1)):
                self.find(2, f"{request} hangs: no answer in {BOUND:.0f} s")
            elif answer.fault != "timeout" and answer.seconds > SLOW and not request.endswith("/slow/one"):
                self.find(3, f"{request} answered only by a time limit: {answer}")
            if answer.status == 0 and answer.fault != "timeout" and not self.is_local_reset() and not until(self.messages, 1):
                self.find(3, f"{request} has no answer ({answer.fault}), and no message says why")
            if answer.status >= 500 and not answer.code:
                self.find(3, f"{request} answered {answer} without a code")

    def is_file_fault(self):
        """True if the fault was in a file or in memory, and no connection was lost."""
        fired = self.stage.faults.calls()
        return bool(fired) and fired[0].name in FILE_CALLS

    def is_accept(self):
        """True if callers could not be accepted: while that lasts they wait in the kernel's queue, and the log says so."""
        fired = self.stage.faults.calls()
        return bool(fired) and fired[0].name == "accept4"

    def is_local_reset(self):
        """True if the fault was a connection that broke: that needs no message."""
        fired = self.stage.faults.calls()
        return bool(fired) and fired[0].name in ("recv", "send", "read", "write", "recvmsg", "sendmsg", "shutdown", "getpeername", "getsockname")

    def recover(self):
        """The same process still serves, and so does one that is started on what this one has left."""
        if self.stage.process.poll() is None and self.stage.accepts(self.stage.port):
            answers = [self.stage.ask(path) for path in ("/open/after", "/closed/after", "/open/after")]
            if answers[-1].status != 200:
                self.find(2, f"does not serve any more: {answers[-1]}")
            code = self.stage.stop()
            if code is None:
                self.find(2, "does not end on SIGTERM")
            elif code != 0:
                self.find(2, f"ends with {code} on SIGTERM: {self.last_words()}")
        elif self.stage.process.poll() is None:
            self.find(2, "does not listen any more")
        self.again()

    def again(self, *requests):
        if self.stage.process.poll() is None:
            self.stage.process.kill()
            self.stage.process.wait()
        if problem := self.stage.start(is_tortured=False):
            return self.find(1, f"does not start again: {problem}: {self.last_words()}")
        for request in requests or ("/open/again", "/basic/again", "/form/again"):
            answer = self.stage.ask(request)
            if answer.status != 200 and not self.waits_for_its_minute(request, answer):
                self.find(1, f"after a restart, {request} gets {answer}: {answer.text[:200]}")
        if self.stage.stop() != 0:
            self.find(2, f"the restarted daemon does not end well: {self.last_words()}")
        return None

    def waits_for_its_minute(self, request, answer):
        """True if the form was submitted once and no answer has shown the outcome: it waits a minute, also after a restart."""
        is_accepted = any(other.status == 200 for path, other in self.stage.answers if "/form/" in path)
        return "/form/" in request and answer.code == "login-failed" and "No answer has shown yet" in answer.text and not is_accepted

    def is_whole(self, path):
        """True if the last POST of that path arrived with its body."""
        body = b"" if path.endswith("/post-empty") else BODY
        return self.upstream.digests.get(path) == hashlib.sha256(body).hexdigest()

    def check_upstream(self):
        for path, count in self.upstream.served.items():
            if count > 1 and path.startswith(("/basic/post", "/form/post", "/open/post")):
                self.find(1, f"{path} was carried out {count} times")
        for request, answer in self.stage.answers:
            path = request.split()[1]
            if answer.status == 200 and path.startswith(("/basic/", "/form/", "/open/")) and not self.upstream.served[path]:
                self.find(1, f"{request} got 200 and never reached the upstream")
            if path.startswith("/closed/") and (answer.status == 200 or self.upstream.arrived[path]):
                self.find(1, f"{request} was forwarded for a user who may not: {answer}")
            if "POST" in request and answer.status == 200 and not self.is_whole(path):
                self.find(1, f"{request} arrived with another body")
        if self.upstream.wrong > (self.first_password != "demo"):
            self.check_wrong()

    def check_wrong(self):
        self.find(1, f"the wrong password was sent {self.upstream.wrong} times")
