# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The tortured commands and services, and the further promises of each."""

import os
import re
import signal
import threading

from callers import ByUser, Foreign, Orphan, Takeover
from logins import NTLM, Code
from scenario import BODY, Scenario
from stage import free_port, until


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
    """A route of another user: a caller that cannot be identified is not admitted."""

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


class Rested(Scenario):
    """A POST without a body on a connection that has rested: it has nothing that must be sent again, and is not repeated."""

    def act(self):
        self.stage.ask("/open/one")
        self.stage.ask("/open/post-empty", "POST")


class Latch(Scenario):
    """A rejected password. After the answer the daemon is killed, and started again."""

    first_password = "bad"
    area = "basic"

    def act(self):
        for name in ("one", "two", "three"):
            self.stage.ask(f"/{self.area}/{name}")

    def check(self):
        if self.upstream.wrong > 1:
            told = "; ".join(f"{request}: {answer}" for request, answer in self.stage.answers)
            self.find(1, f"the rejected password was sent {self.upstream.wrong} times by one process ({told})")

    def recover(self):
        self.sent = self.upstream.wrong
        # A password whose answer got lost was not rejected for any caller: the next process may try it.
        self.told = any(answer.code == "login-rejected" for _, answer in self.stage.answers)
        self.stage.stop(signal.SIGKILL)
        if problem := self.stage.start(is_tortured=False):
            return self.find(1, f"does not start again: {problem}: {self.last_words()}")
        answer = self.stage.ask(f"/{self.area}/after")
        if self.sent and answer.code != "login-latched" and self.upstream.wrong == self.sent:
            self.find(3, f"after a restart the caller gets {answer}, not login-latched")
        self.stage.stop()
        return None

    def check_wrong(self):
        # docs/sessions.md: if the disk refuses the write, the log says so, and the latch holds until a restart.
        warned = any("state is only in memory" in line for line in self.messages())
        if self.told and not warned:
            self.find(1, f"the rejected password was sent {self.upstream.wrong} times across a kill, and nothing warned of it")


class Restart(Scenario):
    """A start on state with a closed latch: what cannot be read does not count as open."""

    first_password = "bad"

    def prepare(self):
        super().prepare()
        self.stage.ask("/basic/one")
        self.stage.stop()
        self.sent = self.upstream.wrong

    def act(self):
        self.problem = self.stage.start()
        if not self.problem:
            self.stage.ask("/basic/two")

    def check_process(self):
        self.check_start(self.problem)

    def recover(self):
        self.stage.stop(signal.SIGKILL)
        if problem := self.stage.start(is_tortured=False):
            return self.find(1, f"does not start again: {problem}: {self.last_words()}")
        answer = self.stage.ask("/basic/after")
        if answer.code != "login-latched":
            self.find(1, f"after a restart the caller gets {answer}, not login-latched")
        self.stage.stop()
        return None

    def check_wrong(self):
        if self.upstream.wrong > self.sent:
            self.find(1, f"the rejected password was sent {self.upstream.wrong - self.sent} times more after the restart")


class Proved(Latch):
    """A password that a login tries itself, on a connection that has rested since the login before."""

    area = "proved"

    def act(self):
        for path in ("/api/one", "/proved/one"):
            self.stage.ask(path)


class Drain(Scenario):
    """SIGTERM with a request under way."""

    arms_at_once = False

    def act(self):
        asked = threading.Thread(target=self.stage.ask, args=("/slow/one",))
        # The request is under way before calls count.
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

    arms_at_once = False

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
        # An answer that was lost on its way takes the token along in any case.
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
        if self.code and has_new and "is written, but" not in self.stage.read("errors"):
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
    "start": Start, "users": Users, "basic": Basic, "form": Form, "replay": Replay, "rested": Rested, "latch": Latch, "restart": Restart, "proved": Proved,
    "refresh-token": RefreshToken, "helper": Helper, "reload": Reload, "drain": Drain, "hand-over": HandOver, "take-over": TakeOver, "keyring": Keyring,
    "code": Code, "ntlm": NTLM, "orphan": Orphan, "by-user": ByUser, "foreign": Foreign, "socket-file": Takeover,
}
