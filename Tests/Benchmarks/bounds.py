# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""What must hold, asked of the results of one run. What was not measured in it is not judged."""

from contestants import ENVOY_SIGNING, TWO_WORKERS
from scenarios import CROWD, MANY, ONE, SPOOLED, TLS

MEGABYTE = 1_000_000


def judged(results, plan):
    """Of each bound: its measure, the bound, what was measured, and whether it holds."""
    return [
        (text, bound, value, holds)
        for text, bound, value, holds in (_row(*each) for each in _measured(results, plan)) if value is not None]


def _row(text, sign, bound, value, form="{:.2f}"):
    if value is None:
        return text, None, None, None
    holds = value <= bound if sign == "≤" else value >= bound
    return text, f"{sign} {bound:g}", form.format(value), holds


def _measured(results, plan):
    requests, transfers = results.get("requests", {}), results.get("transfers", {})
    cpu = "CPU per request, 64 connections, 65 bytes"
    yield f"{cpu}, to Envoy's", "≤", 0.7, _ratio(requests, MANY.name, "cpu", "envoy")
    yield f"{cpu}, to nginx's", "≤", 1.0, _ratio(requests, MANY.name, "cpu", "nginx")
    yield f"{cpu}, TLS upstream, to nginx's", "≤", 1.15, _ratio(requests, TLS.name, "cpu", "nginx")
    yield "CPU per POST of 1 MiB, 64 connections, to that of an nginx that keeps it", "≤", 1.1, _ratio(requests, SPOOLED.name, "cpu", "nginx")
    yield "p50 at one connection, to nginx's", "≤", 1.3, _ratio(requests, ONE.name, "p50", "nginx")
    yield "p99 at 64 connections, to nginx's", "≤", 1.5, _ratio(requests, MANY.name, "p99", "nginx")
    yield "p99 at 512 connections, to nginx's", "≤", 1.2, _ratio(requests, CROWD.name, "p99", "nginx")
    workers = results.get("workers", {})
    two_to_one = _ratio(workers, MANY.name, "cpu", "countersign", TWO_WORKERS)
    yield "CPU per request with two workers, to that with one", "≤", 1.15, two_to_one
    for kind, most in (("cookies", 1.15), ("digest", 1.4), ("realms", 1.15)):
        share = _ratio(results.get("sessions", {}), MANY.name, "cpu", "token", kind)
        yield f"CPU per request on a session of {kind}, to that on a token", "≤", most, share
    sessions = results.get("sessions", {})
    yield "CPU per signed request (AWS), to that with a fixed field", "≤", 1.6, _ratio(sessions, MANY.name, "cpu", "fixed", "signed")
    yield "CPU per signed request (AWS), to Envoy's", "≤", 0.6, _ratio(sessions, MANY.name, "cpu", ENVOY_SIGNING, "signed")
    down = f"{plan.transfer_mib} MiB down"
    yield f"{down}, MB per second of CPU, to nginx's", "≥", 1.0, _ratio(transfers, down, "per_cpu_second", "nginx")
    idle = results.get("idle_kib", {}).get("countersign")
    yield "memory when idle, MB", "≤", 20, idle and idle * 1024 / MEGABYTE, "{:.1f}"
    each = results.get("idle_connection", {}).get("countersign")
    yield f"memory for each of {plan.idle_callers} idle connections, KiB", "≤", 2, each and each / 1024, "{:.1f}"
    above = transfers.get(down, {}).get("countersign", {}).get("medians", {}).get("above_idle")
    yield f"memory above idle during {down}, MB", "≤", 4, above, "{:.1f}"
    reused = results.get("reused", {})
    if reused.get("nginx"):
        yield "share of requests on a connection that was there, 4 workers, to nginx's", "≥", 0.99, reused["countersign"] / reused["nginx"]
    storms = results.get("storms")
    if storms:
        yield f"login storm of {plan.storm_requests}: logins", "≤", 1, max(storm["logins"] for storm in storms), "{}"
        yield "login storm: errors", "≤", 0, max(storm["wrong"] for storm in storms), "{}"
        late = [storm["p99"] for storm in storms]
        yield "login storm: p99, seconds", "≤", 2, None if None in late else sorted(late)[len(late) // 2]
    yield from _growth(results.get("growth", {}), plan.growth)
    size = results.get("stripped_bytes")
    yield "stripped binary, MB", "≤", 30, size and size / MEGABYTE, "{:.1f}"


def _growth(results, sizes):
    """What a thousand may cost. The figures of the daemon only; those of a debug build mean nothing but by their ratios."""
    def found(part, key):
        return results.get(part, {}).get("countersign", {}).get(key)

    for part, most, text in (
        ("path routes", 1.1, f"CPU per request of the last of {sizes.routes} path routes, to the first's"),
        ("host routes", 1.1, f"CPU per request of the last of {sizes.routes} host routes, to the first's"),
        ("location patterns", 1.2, f"CPU per request of a new path with {sizes.patterns} location patterns, to that with one"),
        ("callers' tokens", 1.1, f"CPU per request with the last of {sizes.tokens} callers' tokens, to that with the only one"),
        ("realms", 1.3, f"CPU per request of a new path with {sizes.realms} realms, to that with one"),
        # Ten times as many, and a fifth more: what one start costs in any case can only lower it.
        ("start of upstreams", 12, f"CPU of a start with {sizes.upstreams} upstreams and a challenge each, to that with a tenth"),
        ("logins by caller", 1.3, f"CPU of the last of {sizes.logins} logins by caller, to an early one's"),
    ):
        yield text, "≤", most, found(part, "ratio")
    yield f"start with {sizes.upstreams} upstreams and a challenge each, seconds", "≤", 0.3, found("start of upstreams", "seconds")
    yield f"`check` of {sizes.checked_routes} routes, seconds of CPU", "≤", 0.1, found("check of routes", "cpu"), "{:.3f}"
    yield f"CPU of a /readyz with {sizes.logins} sessions by caller, ms", "≤", 2, found("logins by caller", "readyz")
    yield "worst wait of a request meanwhile, ms", "≤", 5, found("logins by caller", "stall")
    idle, slow = f"{sizes.idle_callers} idle connections", f"{sizes.slow_callers} slow downloads"
    for key, most, text in (("idle", 4, f"with {idle}"), ("idle closed", 2, f"after {idle}"), ("slow closed", 5, f"after {slow}")):
        yield f"memory above that before, {text}, MiB", "≤", most, found("memory of connections", key), "{:.1f}"


def _ratio(results, scenario, measure, to, of="countersign"):
    entry = results.get(scenario, {})
    if of not in entry or not entry.get(to, {}).get("medians", {}).get(measure):
        return None
    return entry[of]["medians"][measure] / entry[to]["medians"][measure]
