# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The share of requests that go over a connection which an earlier one has made: few callers, and more workers than they keep busy."""

import contextlib
import time

import callers
import contestants
import counting

WORKERS = 4
CALLERS = 12
# Requests of each caller, and seconds between two of any.
REQUESTS = 40
PAUSE = 0.002


class Counted(counting.Upstream):
    """Counts the connections that it takes."""

    def __init__(self):
        self.connections = 0
        super().__init__()

    def _connection(self, connection):
        self.connections += 1
        super()._connection(connection)


def run(folder, programs, progress):
    """By contestant, the share of its requests that made no connection; nginx with `keepalive 32` for each of as many workers."""
    results = {}
    for name in ("countersign", "nginx"):
        if name not in programs:
            continue
        with contextlib.ExitStack() as ends:
            upstream = Counted()
            ends.callback(upstream.end)
            port = contestants.with_workers(ends, folder, name, programs[name], upstream.port, WORKERS)
            connections = [ends.enter_context(callers.connect(port)) for _ in range(CALLERS)]
            asked = 0
            for _ in range(REQUESTS):
                for connection in connections:
                    callers.request(connection, "/65")
                    if callers.answer(connection) != 200:
                        raise callers.Unanswered(f"{name}: a request was not answered with 200")
                    asked += 1
                    time.sleep(PAUSE)
            results[name] = round(1 - upstream.connections / asked, 4)
        progress(f"connections reused, {WORKERS} workers: {name} {results[name]:.1%}")
    return results
