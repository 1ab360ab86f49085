# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Logins that depend on kept state on the disk, or on libcurl."""

import signal

from scenario import BODY, Scenario


class Code(Scenario):
    """A form that asks for a one-time password. The daemon is killed, and started again within the half minute of the code."""

    def prepare(self):
        self.stage.variables["COUNTERSIGN_ANN__TOTP_SEED"] = "JBSWY3DPEHPK3PXP"
        text = self.stage.read("countersign.yaml")
        self.stage.write(
            "countersign.yaml",
            text.replace("gateway: j-security-check,", 'gateway: j-security-check, login: { parameters: { otp: "{totp}" } },'))
        super().prepare()

    def act(self):
        self.stage.ask("/form/one")

    def recover(self):
        self.stage.stop(signal.SIGKILL)
        if problem := self.stage.start(is_tortured=False):
            return self.find(1, f"does not start again: {problem}: {self.last_words()}")
        self.stage.ask("/form/after")
        self.stage.stop()
        again = [code for code, count in self.upstream.codes.items() if count > 1]
        if again:
            self.find(1, f"a one-time password was sent {max(self.upstream.codes.values())} times")
        return None


class NTLM(Scenario):
    """POSTs to a server with NTLM: one whose server answers the empty request, with which NTLM begins, as if it were all, and one
    without a body on an idle connection."""

    def prepare(self):
        text = self.stage.read("countersign.yaml")
        place = f"http://127.0.0.1:{self.upstream.port}/ntlm/*"
        self.stage.write(
            "countersign.yaml",
            text.replace("challenges:\n", f'challenges:\n  - {{ name: ntlm, at: "{place}", scheme: ntlm, credential: ann }}\n'))
        super().prepare()

    def act(self):
        self.stage.ask("/ntlm/anybody", "POST", BODY)
        self.stage.ask("/ntlm/post", "POST", BODY)
        self.stage.ask("/ntlm/post-empty", "POST")

    def check(self):
        for request, answer in self.stage.answers:
            path = request.split()[1]
            if answer.status == 200 and not self.is_whole(path):
                self.find(1, f"{request} got 200, and its body never arrived")
        for path, count in self.upstream.served.items():
            if path.startswith("/ntlm/") and count > 1:
                self.find(1, f"{path} was carried out {count} times")
