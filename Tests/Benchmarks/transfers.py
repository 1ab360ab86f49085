# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Long bodies, each mebibyte of them compared on arrival: throughput, CPU, and memory above that at rest."""

import statistics
import threading
import time

import streams

MIB = 1 << 20
# Names of figures, and their titles.
MEASURES = {
    "per_second": "MiB per second",
    "per_cpu_second": "MB per second of CPU",
    "above_idle": "most memory above idle, MB",
}


def scenarios(size):
    return {
        f"{size} MiB down": (size, lambda port: streams.down(port, size * MIB)),
        f"{size} MiB up": (size, lambda port: streams.up(port, size * MIB)),
    }


class Peak:
    """The most memory that a server held while it ran, in KiB."""

    def __init__(self, server):
        self.server, self.kib, self.is_over = server, 0, False
        self.pids = server.tree()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()

    def _watch(self):
        while not self.is_over:
            self.kib = max(self.kib, self.server.resident_kib(self.pids))
            time.sleep(0.02)


def run(contestants, plan, progress):
    """By transfer and contestant the medians; the most memory is the most of all rounds."""
    idle = {}
    for contestant in contestants:
        streams.down(contestant.ports["bodies"], 100)
        streams.up(contestant.ports["bodies"], 100)
        idle[contestant.name] = contestant.server.resident_kib()
    results = {}
    for name, (size, body) in scenarios(plan.transfer_mib).items():
        rounds = {contestant.name: [] for contestant in contestants}
        for _ in range(plan.volume_rounds):
            for contestant in contestants:
                rounds[contestant.name].append(_round(contestant, size, body, idle[contestant.name]))
        results[name] = {each: {"medians": _medians(figures), "rounds": figures} for each, figures in rounds.items()}
        progress(f"{name}: " + ", ".join(
            f"{each} {figures['medians']['per_cpu_second']:.0f} MB per second of CPU" for each, figures in results[name].items()))
    return results


def _round(contestant, size, body, idle):
    before, start = contestant.server.usage(), time.monotonic()
    with Peak(contestant.server) as peak:
        body(contestant.ports["bodies"])
    elapsed, used = time.monotonic() - start, contestant.server.usage() - before
    return {
        "per_second": round(size / elapsed), "per_cpu_second": round(size * MIB / 1e6 / max(used.total, 0.001)),
        "above_idle": round((peak.kib - idle) * 1024 / 1e6, 1),
    }


def _medians(rounds):
    medians = {name: statistics.median(figures[name] for figures in rounds) for name in MEASURES}
    return {**medians, "above_idle": max(figures["above_idle"] for figures in rounds)}
