# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The rounds: each contestant in turn, again and again."""

import statistics

import load

# What a round says, and the unit of it.
MEASURES = {
    "cpu": "µs of CPU per request",
    "user": "of it user",
    "system": "of it system",
    "rate": "requests per second",
    "p50": "p50 latency, µs",
    "p99": "p99 latency, µs",
}


class Invalid(Exception):
    """A round in which not every answer was right measures nothing."""


def run(contestants, plan, folder, progress):
    """Results by scenario and contestant: each round and the medians; and the memory of each contestant."""
    scenarios = []
    for scenario in plan.scenarios:
        script = load.script(folder, scenario)
        rounds = {contestant.name: [] for contestant in contestants}
        for contestant in contestants:
            # Connections upstream and memory pools are there before anything is counted.
            _round(contestant, scenario, script, seconds=1)
        for number in range(plan.rounds):
            for contestant in contestants:
                result = _round(contestant, scenario, script, plan.seconds)
                rounds[contestant.name].append(result)
                progress(
                    f"{scenario.name}: round {number + 1} of {plan.rounds}, {contestant.name}: "
                    f"{result['cpu']:.1f} µs of CPU per request, {result['rate']:.0f} requests per second")
        scenarios.append({
            "scenario": scenario.name,
            "contestants": {
                name: {"medians": _medians(results), "rounds": results} for name, results in rounds.items()},
        })
    memory = {
        contestant.name: {"idle_kib": contestant.idle_kib, "after_load_kib": contestant.server.resident_kib()}
        for contestant in contestants}
    return {"scenarios": scenarios, "memory": memory}


def _round(contestant, scenario, script, seconds):
    before = contestant.server.usage()
    figures = load.run(script, contestant.port, scenario.connections, seconds)
    used = contestant.server.usage() - before
    if figures["bad_status"] or figures["lost"] or not figures["requests"] or contestant.server.has_ended():
        raise Invalid(
            f"{contestant.name}, {scenario.name}: {figures['bad_status']} wrong answers, {figures['lost']} lost of "
            f"{figures['requests']}\n{contestant.server.last_words()}")
    each = 1e6 / figures["requests"]
    return {
        "cpu": (used.user + used.system) * each, "user": used.user * each, "system": used.system * each,
        "rate": figures["requests"] / (figures["microseconds"] / 1e6), "p50": figures["p50"], "p99": figures["p99"],
        "requests": figures["requests"],
    }


def _medians(rounds):
    return {name: statistics.median(result[name] for result in rounds) for name in MEASURES}
