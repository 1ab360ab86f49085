# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""What is asked of the contestants, and for how long."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scenario:
    name: str
    connections: int
    body_bytes: int = 0


@dataclass(frozen=True)
class Plan:
    scenarios: tuple
    rounds: int
    seconds: int

    def changed(self, rounds, seconds, only):
        """The plan with what the command line has to say."""
        chosen = tuple(scenario for scenario in self.scenarios if (only or "") in scenario.name)
        return replace(self, scenarios=chosen, rounds=rounds or self.rounds, seconds=seconds or self.seconds)

    @property
    def description(self):
        return {"rounds": self.rounds, "seconds_per_round": self.seconds}


# Answers of 65 bytes throughout: what is measured is the cost of a request, not that of bytes.
MANY = Scenario("GET, 64 connections", 64)
ONE = Scenario("GET, 1 connection", 1)
POST = Scenario("POST of 4 KiB, 64 connections", 64, body_bytes=4096)

# Many short rounds: what else the machine does comes in bursts, and the median passes over them.
FULL = Plan((MANY, ONE, POST), rounds=20, seconds=1)
QUICK = Plan((MANY, ONE, POST), rounds=1, seconds=1)
