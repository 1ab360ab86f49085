# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""What is asked of the contestants, and for how long."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scenario:
    """Requests by wrk. `rounds`: of one second each, in a full run."""
    name: str
    connections: int
    rounds: int
    upstream: str = "plain"
    path: str = "/balance"
    body_bytes: int = 0
    # Lua behind that of every scenario.
    more_script: str = ""


@dataclass(frozen=True)
class Growth:
    """How many of each thing stand beside one or few of them."""
    routes: int = 1000
    checked_routes: int = 10000
    upstreams: int = 1000
    patterns: int = 1000
    tokens: int = 1000
    realms: int = 300
    logins: int = 2000
    idle_callers: int = 2000
    slow_callers: int = 1000
    # Rounds of requests, and of all that needs a new daemon.
    rounds: int = 7
    starts: int = 3
    only: str = ""


@dataclass(frozen=True)
class Plan:
    scenarios: tuple
    # Rounds of each transfer, start and storm.
    volume_rounds: int
    starts: int
    storms: int
    transfer_mib: int = 1024
    idle_callers: int = 5000
    # Seconds given to a proxy to come to rest with them.
    rest: int = 6
    storm_requests: int = 10000
    growth: Growth = Growth()
    seconds: int = 1
    is_quick: bool = False
    # The contestants beside the daemon and nginx.
    others: tuple = ("haproxy", "envoy", "caddy")

    def changed(self, rounds, only):
        """The plan with what the command line has to say."""
        wanted = tuple(scenario for scenario in self.scenarios if (only or "") in scenario.name)
        if rounds:
            wanted = tuple(replace(scenario, rounds=rounds) for scenario in wanted)
        growth = replace(self.growth, rounds=rounds or self.growth.rounds, only=only or "")
        return replace(self, scenarios=wanted, growth=growth)

    def of_workers(self):
        """What is asked of one worker and of two."""
        wanted = [scenario for scenario in self.scenarios if scenario.name.startswith("GET 65 B") and scenario.connections > 1]
        return replace(self, scenarios=tuple(scenario for scenario in wanted if scenario.upstream == "plain"))

    def of_sessions(self):
        """What is asked with each kind of session."""
        return replace(self, scenarios=tuple(scenario for scenario in self.scenarios if scenario.name == MANY.name))


# What the bounds speak of has more rounds: what else the machine does comes in bursts, and the median passes over them.
MANY = Scenario("GET 65 B, 64 connections", 64, rounds=15)
ONE = Scenario("GET 65 B, 1 connection", 1, rounds=10)
CROWD = Scenario("GET 65 B, 512 connections", 512, rounds=9)
TLS = Scenario("GET 65 B, 64 connections, TLS upstream", 64, rounds=9, upstream="tls")
SPOOLED = Scenario(
    "POST 1 MiB, 64 connections, kept whole by nginx", 64, rounds=5, upstream="spooled", path="/upload", body_bytes=1 << 20)
FULL = Plan((
    MANY,
    ONE,
    CROWD,
    Scenario("GET 16 KiB, 64 connections", 64, rounds=5, path="/files/16384"),
    Scenario("GET 1 MiB, 64 connections", 64, rounds=5, path="/files/1048576"),
    Scenario("POST 4 KiB, 64 connections", 64, rounds=5, path="/upload", body_bytes=4096),
    Scenario("POST 1 MiB, 64 connections", 64, rounds=5, path="/upload", body_bytes=1 << 20),
    SPOOLED,
    TLS,
    Scenario("GET 65 B, 64 connections, HTTP/2 upstream", 64, rounds=5, upstream="h2"),
), volume_rounds=3, starts=5, storms=3)

QUICK = replace(
    FULL, scenarios=(replace(MANY, rounds=2), replace(ONE, rounds=1)), volume_rounds=1, starts=1, storms=1, transfer_mib=64,
    idle_callers=500, rest=2, storm_requests=1000, others=(), is_quick=True,
    growth=Growth(
        routes=100, checked_routes=1000, upstreams=100, patterns=100, tokens=100, realms=20, logins=300, idle_callers=200, slow_callers=100,
        rounds=1, starts=1))
