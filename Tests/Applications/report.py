# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The results as a table for a terminal, as JSON, and as docs/applications.md."""

import contextlib
import json
import os
import re
from dataclasses import dataclass, field

import daemon
from checks import TITLES, Outcome

SIGNS = {"passed": "yes", "failed": "NO", "none": "-"}


@dataclass
class Result:
    name: str
    title: str
    login: str
    lines: int
    configuration: str
    # True if docs/applications.md shows the configuration.
    is_documented: bool = False
    version: str = ""
    # Of each check, by its name; none if the application did not start.
    outcomes: dict = field(default_factory=dict)
    # Why it did not start.
    trouble: str = ""
    seconds: float = 0

    @staticmethod
    def of(kind):
        application = kind(None)
        return Result(
            application.name, kind.title, kind.login, daemon.lines(application), application.configuration, kind.documented)

    def learned(self, application):
        """Shows what `learn` printed in place of the configuration that the application's file has."""
        self.lines, self.configuration = daemon.lines(application), application.configuration

    @property
    def is_whole(self):
        return bool(self.outcomes) and all(each.state != "failed" for each in self.outcomes.values())

    @property
    def logs_in(self):
        return bool(self.outcomes) and self.outcomes["cold"].state == "passed"

    def reasons(self):
        """Why checks failed, each reason with the checks that have it."""
        if self.trouble:
            return [f"not tried: {self.trouble.splitlines()[0]}"]
        names = {}
        for name, each in self.outcomes.items():
            if each.state == "failed":
                names.setdefault(each.need or each.reason, []).append(name)
        return [f"{', '.join(checks)}: {reason}" for reason, checks in names.items()]

    def store(self, folder):
        """Keeps the result for a later page of all."""
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{self.name}.json"), "w") as file:
            json.dump(self.document(), file, indent=1)

    def restore(self, folder):
        """Fills in what an earlier run kept, if one did."""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, f"{self.name}.json")) as file:
            kept = json.load(file)
            self.version, self.trouble, self.seconds = kept["version"], kept["trouble"], kept["seconds"]
            self.outcomes = {name: Outcome(**each) for name, each in kept["checks"].items()}
        return self

    def document(self):
        checks = {name: {"state": each.state, "reason": each.reason, "need": each.need} for name, each in self.outcomes.items()}
        return {
            "name": self.name, "title": self.title, "version": self.version, "login": self.login, "lines": self.lines,
            "whole": self.is_whole, "checks": checks, "trouble": self.trouble, "seconds": round(self.seconds, 1)}


def summary(results):
    whole, logged_in = sum(each.is_whole for each in results), sum(each.logs_in for each in results)
    return f"{whole} of {len(results)} applications pass every check; Countersign logs in to {logged_in}."


def line(result):
    """One line for a terminal, with the reasons below it."""
    signs = "".join(f"{SIGNS[result.outcomes[name].state] if result.outcomes else '?':7}" for name in TITLES)
    text = f"{result.name:18}{result.version[:12]:14}{result.login[:16]:18}{result.lines:5}  {signs}{result.seconds:5.0f} s"
    return "\n".join([text] + [f"    {reason[:300]}" for reason in result.reasons()])


def head():
    return f"{'application':18}{'version':14}{'login':18}{'lines':>5}  " + "".join(f"{name:7}" for name in TITLES)


def page(results):
    """The text of docs/applications.md."""
    parts = [
        "# Real applications\n",
        "`make applications` installs these applications from Debian and PyPI, starts each, and logs in to it through Countersign.",
        "`Tests/Applications/run --write` writes this page.\n",
        f"{summary(results)} Each has a file with its configuration, linked in the",
        "table; a dozen configurations are [below](#a-dozen-configurations). \"Lines\" counts the YAML of the upstream and its challenge. The checks:\n",
        *[f"- **{name}**: {title}" for name, title in TITLES.items()],
        "\n`-`: not for this application; its file says why.\n",
        f"| application | version | login | lines | {' | '.join(TITLES)} |",
        f"|---|---|---|---|{'---|' * len(TITLES)}"]
    for each in results:
        signs = " | ".join(SIGNS[each.outcomes[name].state] if each.outcomes else "?" for name in TITLES)
        parts.append(f"| [{each.title}](../Tests/Applications/apps/{each.name}.py) | {each.version} | {each.login} | {each.lines} | {signs} |")
    parts += ["\n## What is missing\n"]
    for each in results:
        parts += [f"- {each.title}: {'; '.join(cell(reason) for reason in each.reasons())}."] if each.reasons() else []
    documented = [each for each in results if each.is_documented]
    parts += ["\n## A dozen configurations\n", "One daemon in front of all of them, each with another kind of login.\n"]
    parts += ["```yaml", combined(documented), "```"]
    return "\n".join(parts) + "\n"


def combined(results):
    """One configuration with the upstreams and the challenges of all, and a listener for each."""
    listeners, upstreams, challenges = [], [], []
    for port, each in enumerate(results, 8081):
        begin, upstream, challenge = re.split(r"^(?:upstreams|challenges):\n", each.configuration, flags=re.MULTILINE)
        if begin.strip():
            raise ValueError(f"{each.name}: only upstreams and challenges can be shown")
        listeners.append(f"  - {{ address: 127.0.0.1:{port}, upstream: {each.name} }}")
        upstreams.append(upstream.strip("\n"))
        challenges.append(f"  # {each.title}: {each.login}\n{challenge.strip(chr(10))}")
    return "\n".join(["listeners:", *listeners, "\nupstreams:", *upstreams, "\nchallenges:", *challenges])


def cell(text):
    return " ".join(text.split())
