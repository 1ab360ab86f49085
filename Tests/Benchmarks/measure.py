# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The rounds of requests: each contestant in turn, again and again."""

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
    """By scenario and contestant: each round, and the medians. Who cannot speak with a scenario's upstream is not in it."""
    results = {}
    for scenario in plan.scenarios:
        script = load.script(folder, scenario)
        taking_part = [contestant for contestant in contestants if scenario.upstream in contestant.ports]
        rounds = {contestant.name: [] for contestant in taking_part}
        for contestant in taking_part:
            # Connections upstream and memory pools are there before anything is counted.
            once(contestant, scenario, script, seconds=1)
        for _ in range(scenario.rounds):
            for contestant in taking_part:
                rounds[contestant.name].append(once(contestant, scenario, script, plan.seconds))
        results[scenario.name] = {
            name: {"medians": _medians(each), "rounds": each} for name, each in rounds.items() if each}
        progress(f"{scenario.name}: " + ", ".join(
            f"{name} {each['medians']['cpu']:.1f} µs" for name, each in results[scenario.name].items()))
    return results


def once(contestant, scenario, script, seconds):
    """The figures of one round."""
    before = contestant.server.usage()
    figures = load.run(script, contestant.ports[scenario.upstream], scenario, seconds)
    used = contestant.server.usage() - before
    if figures["bad_status"] or figures["lost"] or not figures["requests"] or contestant.server.has_ended():
        raise Invalid(
            f"{contestant.name}, {scenario.name}: {figures['bad_status']} wrong answers, {figures['lost']} lost of "
            f"{figures['requests']}\n{contestant.server.last_words()}")
    cpu = used.total * 1e6 / figures["requests"]
    user = cpu * used.user / max(used.user + used.system, 0.01)
    return {
        "cpu": round(cpu, 2), "user": round(user, 2), "system": round(cpu - user, 2),
        "rate": round(figures["requests"] / (figures["microseconds"] / 1e6)), "p50": figures["p50"], "p99": figures["p99"],
        "requests": figures["requests"],
    }


def _medians(rounds):
    return {name: statistics.median(result[name] for result in rounds) for name in MEASURES}
