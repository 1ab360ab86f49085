# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""What callers cost in memory who want nothing, each of whom was answered once, or who do not read. The kernel's sockets are not in it."""

import socket
import time

from callers import allow_many, open_callers, request

MIB = 1 << 20


def run(contestants, plan, progress):
    """By contestant, bytes for each idle connection."""
    allow_many()
    results = {}
    for contestant in contestants:
        port = contestant.ports["plain"]
        # The first ones bring about what is there once, not for each.
        for caller in open_callers(port, "/balance", 100):
            caller.close()
        time.sleep(1)
        before = contestant.server.anonymous_bytes()
        callers = open_callers(port, "/balance", plan.idle_callers)
        time.sleep(plan.rest)
        each = (contestant.server.anonymous_bytes() - before) / len(callers)
        for caller in callers:
            caller.close()
        results[contestant.name] = round(each)
        progress(f"{plan.idle_callers} idle connections: {contestant.name} {each:.0f} bytes each")
    return results


def held(server, port, plan):
    """MiB above those at first: with idle callers, without them, with callers who do not read /big, and without those."""
    found = {}
    # The first ones bring about what is there once, not for each.
    _close(open_callers(port, "/", 100))
    time.sleep(plan.rest)
    before = server.anonymous_bytes()

    def note(key):
        time.sleep(plan.rest)
        found[key] = round((server.anonymous_bytes() - before) / MIB, 2)

    idle = open_callers(port, "/", plan.growth.idle_callers)
    note("idle")
    _close(idle)
    note("idle closed")
    slow = [_slow_caller(port) for _ in range(plan.growth.slow_callers)]
    note("slow")
    _close(slow)
    note("slow closed")
    return found


def _slow_caller(port):
    """A caller who asks for much and reads nothing. Small segments keep the kernel from buffering megabytes for each."""
    caller = socket.socket()
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)
    caller.settimeout(20)
    caller.connect(("127.0.0.1", port))
    request(caller, "/big")
    return caller


def _close(connections):
    for connection in connections:
        connection.close()
