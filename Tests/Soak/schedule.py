# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""What happens in the soak and when, from a seed; and which answers each event explains."""

import random
from dataclasses import dataclass, field

FAULTS = ("reset", "error", "busy", "hang", "cut", "down", "slow")
# What a request may come to while its login cannot succeed.
NO_LOGIN = {"login-failed", "login-timeout"}
REJECTED = {"login-rejected", "login-latched"}
# By fault: what a request may come to.
EXPLAINED = {
    "reset": {"upstream-unreachable", "upstream-protocol", "cut"} | NO_LOGIN,
    "error": {"upstream 500"} | NO_LOGIN,
    "busy": {"upstream 503"} | NO_LOGIN,
    "hang": {"upstream-timeout", "upstream-unreachable"} | NO_LOGIN,
    "cut": {"cut", "upstream-unreachable", "upstream-protocol"} | NO_LOGIN,
    "down": {"upstream-unreachable", "upstream-protocol", "cut", "upstream-timeout"} | NO_LOGIN,
    "slow": set(),
}
# A pause after an unknown outcome doubles from one second; in a fault of FAULT_SECONDS it grows to eight, and one that ends
# just after the fault can be followed by another failure.
FAULT_SECONDS, BACK_OFF = 10, 16


@dataclass
class Event:
    at: float
    kind: str
    upstream: str = "*"
    variant: str = ""
    began: float = 0
    ended: float = 0
    result: str = ""

    @property
    def name(self):
        return " ".join(part for part in (self.kind, self.variant, self.upstream if self.upstream != "*" else "") if part)


@dataclass
class Window:
    """While it is open, requests to the upstream may come to one of these codes."""
    upstream: str
    began: float
    codes: set
    why: str
    ended: float = field(default=float("inf"))

    def explains(self, upstream, code, began, ended):
        return self.upstream in ("*", upstream) and code in self.codes and began <= self.ended and ended >= self.began


def planned(seconds, seed, protections):
    """The events of so many seconds, in order. The last quarter has none but reloads, so that the last process lives long enough."""
    chooser = random.Random(seed)
    active = seconds * 0.75
    events = []
    at, last_restart, busy = 20.0, 0.0, {}
    names = [protection.name for protection in protections]
    latching = [protection.name for protection in protections if protection.latches]
    with_value = [protection.name for protection in protections if protection.field]
    forgetful = [protection.name for protection in protections if protection.has_sessions]
    # Each kind of event comes round; the order within a round is chosen.
    hand = []
    restart_every = min(300.0, max(60.0, active / 6))
    crash = False
    while at < active:
        if at - last_restart >= restart_every:
            events.append(Event(at, "crash" if crash else "restart"))
            last_restart, crash = at, not crash
            at += 8
            continue
        if not hand:
            hand = [("fault", fault) for fault in FAULTS] + [
                ("rotation", "overlapping"), ("rotation", "overlapping"), ("rotation", "server first"), ("rotation", "file first"),
                ("wrong password", ""), ("drop", ""), ("drop", "")]
            chooser.shuffle(hand)
        kind, variant = hand.pop()
        possible = {
            "fault": names, "rotation": with_value if variant != "file first" else latching, "wrong password": latching,
            "drop": forgetful}[kind]
        free = [name for name in possible if busy.get(name, 0) <= at]
        if free:
            upstream = chooser.choice(free)
            length = {"fault": FAULT_SECONDS + BACK_OFF + 20, "rotation": 50, "wrong password": 100, "drop": 15}[kind]
            if at + length < active + 20:
                events.append(Event(at, kind, upstream, variant))
                busy[upstream] = at + length
        at += chooser.uniform(3, 8)
    reload_at = 30.0
    while reload_at < seconds - 15:
        events.append(Event(reload_at, "reload", variant="broken" if round(reload_at / 30) % 5 == 0 else "changed"))
        reload_at += 30
    return sorted(events, key=lambda event: event.at)
