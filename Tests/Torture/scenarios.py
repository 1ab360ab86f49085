# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""What is tortured: each scenario prepares, acts while calls count, and says what must hold afterwards, whatever failed."""

import hashlib
import os
import re
import signal
import threading

from stage import BOUND, free_port, until

BODY = bytes(range(256)) * 1200
SLOW = 3.0
# RestartPreventExitStatus= of the unit.
FINAL = {64, 78}
FILE_CALLS = {"open", "write", "fsync", "rename", "fchown", "realpath", "opendir", "stat", "fstat", "mkdir", "link", "unlink", "mlock"}


class Scenario:
    """A daemon that runs before calls count. Findings are (severity, sentence): 1 breaks a promise, 2 an end or a hang, 3 is unclear."""

    first_password = "demo"

    def __init__(self, stage):
        self.stage, self.findings = stage, []
        self.upstream = stage.upstream
        stage.variables["COUNTERSIGN_ANN__PASSWORD"] = self.first_password

    def find(self, severity, text):
        self.findings.append((severity, text))

    def prepare(self):
        if problem := self.stage.start():
            raise RuntimeError(f"no start without a fault: {problem}")

    def act(self):
        raise NotImplementedError

    def check(self):
        """What this scenario alone promises."""

    def run(self):
        """All of it, and the general promises."""
        self.prepare()
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
        """What the program says of troubles: its log from `warning` on, and what is no log."""
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
        lines = [line for line in (self.stage.read(self.stage.log) + self.stage.read("errors")).split("\n") if line]
        return " | ".join(lines[-3:])[:400] or "no words"

    def check_answers(self):
        for request, answer in self.stage.answers:
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
            if answer.status != 200:
                self.find(1, f"after a restart, {request} gets {answer}: {answer.text[:200]}")
        if self.stage.stop() != 0:
            self.find(2, f"the restarted daemon does not end well: {self.last_words()}")
        return None

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
            if "POST" in request and answer.status == 200 and self.upstream.digests.get(path) != hashlib.sha256(BODY).hexdigest():
                self.find(1, f"{request} arrived with another body")
        if self.upstream.wrong > (self.first_password != "demo"):
            self.check_wrong()

    def check_wrong(self):
        self.find(1, f"the wrong password was sent {self.upstream.wrong} times")


class Start(Scenario):
    """From the first instruction to the first answer."""

    def prepare(self):
        pass

    def act(self):
        self.problem = self.stage.start()
        if not self.problem:
            self.stage.ask("/open/first")

    def check_process(self):
        self.check_start(self.problem)


class Basic(Scenario):
    """A login by Basic at the first request, and a second request."""

    def act(self):
        self.stage.ask("/basic/one")
        self.stage.ask("/basic/two")


class Users(Scenario):
    """A route of another user: whoever asks is not let in because nobody could tell who it is."""

    def act(self):
        for path in ("/closed/one", "/open/two", "/closed/three"):
            self.stage.ask(path)


class Form(Scenario):
    """A login page, and a POST with the session."""

    def act(self):
        self.stage.ask("/form/one")
        self.stage.ask("/form/post", "POST", BODY)


class Replay(Scenario):
    """A body that is held on disk, and sent again after a 401."""

    def act(self):
        self.stage.ask("/basic/post", "POST", BODY)


class Latch(Scenario):
    """A rejected password. After the answer the daemon is killed, and started again."""

    first_password = "bad"

    def act(self):
        for name in ("one", "two", "three"):
            self.stage.ask(f"/basic/{name}")

    def check(self):
        if self.upstream.wrong > 1:
            told = "; ".join(f"{request}: {answer}" for request, answer in self.stage.answers)
            self.find(1, f"the rejected password was sent {self.upstream.wrong} times by one process ({told})")

    def recover(self):
        self.sent = self.upstream.wrong
        self.stage.stop(signal.SIGKILL)
        if problem := self.stage.start(is_tortured=False):
            return self.find(1, f"does not start again: {problem}: {self.last_words()}")
        answer = self.stage.ask("/basic/after")
        if self.sent and answer.code != "login-latched" and self.upstream.wrong == self.sent:
            self.find(3, f"after a restart the caller gets {answer}, not login-latched")
        self.stage.stop()
        return None

    def check_wrong(self):
        # docs/sessions.md: if the disk refuses the write, the log says so, and the latch holds until a restart.
        warned = any(re.search(r"latch|state", line) for line in self.messages())
        told = any(answer.code == "login-rejected" for _, answer in self.stage.answers)
        if told and not warned:
            self.find(1, f"the rejected password was sent {self.upstream.wrong} times across a kill, and nothing warned of it")


class Drain(Scenario):
    """SIGTERM with a request under way."""

    def act(self):
        asked = threading.Thread(target=self.stage.ask, args=("/slow/one",))
        # The request is under way before calls count.
        self.stage.faults.disarm()
        asked.start()
        self.upstream.wait_for("/slow/one")
        self.stage.faults.arm()
        self.stage.process.send_signal(signal.SIGTERM)
        until(lambda: " draining" in self.stage.read(self.stage.log) or self.stage.process.poll() is not None, 3)
        self.upstream.release.set()
        asked.join()
        self.code = self.stage.wait_for_exit()

    def check_process(self):
        if self.code is None:
            self.find(2, "does not end on SIGTERM")
        elif self.code != 0:
            self.find(2, f"ended with {self.code} on SIGTERM: {self.last_words()}")

    def check(self):
        answer = self.stage.answers[0][1]
        if answer.status != 200 and not self.is_local_reset():
            self.find(3, f"the request under way got {answer}")


class Reload(Scenario):
    """SIGHUP with a listener more."""

    def act(self):
        self.second = free_port()
        old = self.stage.read("countersign.yaml")
        self.stage.write("countersign.yaml", old.replace("upstreams:\n", f"  - {{ address: 127.0.0.1:{self.second}, upstream: site }}\nupstreams:\n"))
        self.reload()

    def reload(self):
        seen = len(re.findall(r"reload", self.notices()))
        self.stage.process.send_signal(signal.SIGHUP)
        self.ended = until(lambda: len(re.findall(r"reload", self.notices())) > seen or self.stage.process.poll() is not None, 4)

    def check(self):
        if self.stage.process.poll() is not None:
            return
        refused = "reload refused" in self.notices()
        if not self.ended and not self.is_log_lost():
            self.find(2, "the log does not tell how the reload ended")
        listens = self.stage.accepts(self.second)
        if self.ended and refused == listens:
            self.find(1, f"the reload was {'refused' if refused else 'accepted'}, yet the new address is {'open' if listens else 'closed'}")
        if self.stage.ask("/open/old").status != 200:
            self.find(1, "the old listener does not serve after the reload")
        self.reload()
        if not self.stage.accepts(self.second) or self.stage.ask("/open/new", port=self.second).status != 200:
            self.find(1, f"a second reload does not open the new address: {self.last_words()}")

    def is_log_lost(self):
        fired = self.stage.faults.calls()
        return bool(fired) and fired[0].name == "write"


class HandOver(Scenario):
    """Sessions into the manager's store, SIGTERM, and the next process takes them."""

    def prepare(self):
        self.stage.use_manager()
        super().prepare()

    def act(self):
        self.stage.ask("/form/one")
        until(lambda: self.stage.manager.stored, 0.4)
        self.stage.process.send_signal(signal.SIGTERM)
        self.code = self.stage.wait_for_exit()

    def check_process(self):
        if self.code != 0:
            self.find(2, f"ended with {self.code} on SIGTERM: {self.last_words()}")

    def recover(self):
        logins = self.upstream.right
        stored = tuple(os.dup(descriptor) for descriptor in self.stage.manager.stored)
        if problem := self.stage.start(is_tortured=self.tortures_second(), stored=stored):
            self.no_start(problem)
        else:
            answer = self.stage.ask("/form/next")
            self.after(answer, logins)
        self.stage.faults.disarm()
        for descriptor in stored:
            os.close(descriptor)
        self.stage.stop()
        self.again()

    def tortures_second(self):
        return False

    def no_start(self, problem):
        self.find(1, f"does not start with stored sessions: {problem}: {self.last_words()}")

    def after(self, answer, logins):
        if answer.status != 200:
            self.find(1, f"after the hand-over the caller gets {answer}")
        if self.stage.answers[0][1].status == 200 and self.upstream.right > logins:
            self.find(2, f"the session was lost, {'with a message' if self.messages() else 'and no message says so'}")


class TakeOver(HandOver):
    """The same, and the next process is the one that fails."""

    def act(self):
        self.stage.faults.disarm()
        super().act()
        self.stage.faults.arm()

    def run(self):
        self.stage.faults.disarm()
        return super().run()

    def tortures_second(self):
        self.stage.faults.arm()
        return True

    def no_start(self, problem):
        self.check_start(problem)

    def after(self, answer, logins):
        if self.upstream.right > logins and not until(lambda: re.search("not taken over|cannot be taken over", self.notices()), 1):
            self.find(3, "the session was lost, and no message says so")
        if answer.status != 200 and answer.fault == "timeout":
            self.find(2, "the first request hangs")


class RefreshToken(Scenario):
    """A refresh token that the server replaces at each use, across a restart."""

    def act(self):
        self.stage.ask("/api/one")

    def recover(self):
        code = self.stage.stop()
        if code != 0:
            self.find(2, f"ends with {code} on SIGTERM")
        if problem := self.stage.start(is_tortured=False):
            return self.find(1, f"does not start again: {problem}: {self.last_words()}")
        answer = self.stage.ask("/api/again")
        # An answer that was lost on its way takes the token along, whatever one does.
        if answer.status != 200 and self.is_file_fault():
            warned = bool(self.messages())
            self.find(3 if warned else 1, f"the new refresh token was lost ({'with' if warned else 'without'} a warning): {answer}")
        self.stage.stop()
        return None


class Keyring(Scenario):
    """`keyring set` beside a stored value."""

    def command(self, *words, text="", is_tortured=False, log="output"):
        words = ["keyring", words[0], "--keyring", self.stage.path("keyring"), *words[1:]]
        self.stage.spawn(words, log, is_tortured, text)
        return self.stage.wait_for_exit()

    def prepare(self):
        for words, text in ((["init"], ""), (["set", "ann", "password"], "old")):
            if self.command(*words, text=text):
                raise RuntimeError(self.stage.read("output"))

    def act(self):
        self.code = self.command("set", "bob", "password", text="new", is_tortured=True, log="errors")

    def check_process(self):
        if self.code is None or self.code < 0:
            self.find(2, f"keyring set ended with {self.code}: {self.last_words()}")
        elif self.code and not self.stage.read("errors").strip():
            self.find(3, f"keyring set ended with {self.code} without a message")

    def check(self):
        if self.command("get", "ann", "password", log="old") or self.stage.read("old") != "old":
            self.find(1, f"the old value cannot be read any more: {self.stage.read('old')[:200]}")
        has_new = not self.command("get", "bob", "password", log="new") and self.stage.read("new") == "new"
        if self.code == 0 and not has_new:
            self.find(1, "keyring set ended with 0 and stored nothing")
        if self.code and has_new:
            self.find(3, f"keyring set ended with {self.code} though the value is stored: {self.last_words()}")
        if self.command("set", "bob", "password", text="third", log="third"):
            self.find(1, f"another set fails: {self.stage.read('third')[:200]}")

    def recover(self):
        pass


class Helper(Scenario):
    """A credential that a program of the machine knows."""

    def prepare(self):
        for name in ("COUNTERSIGN_ANN__USERNAME", "COUNTERSIGN_ANN__PASSWORD"):
            del self.stage.variables[name]
        super().prepare()

    def act(self):
        self.stage.ask("/basic/one")


ALL = {
    "start": Start, "users": Users, "basic": Basic, "form": Form, "replay": Replay, "latch": Latch, "refresh-token": RefreshToken, "helper": Helper,
    "reload": Reload, "drain": Drain, "hand-over": HandOver, "take-over": TakeOver, "keyring": Keyring,
}
