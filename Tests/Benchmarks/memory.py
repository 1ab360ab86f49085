# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""What callers cost in memory who want nothing, each of whom was answered once. The kernel's sockets are not in it."""

import time

from callers import allow_many, open_callers


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
