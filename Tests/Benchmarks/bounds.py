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
    size = results.get("stripped_bytes")
    yield "stripped binary, MB", "≤", 30, size and size / MEGABYTE, "{:.1f}"


def _ratio(results, scenario, measure, to, of="countersign"):
    entry = results.get(scenario, {})
    if of not in entry or not entry.get(to, {}).get("medians", {}).get(measure):
        return None
    return entry[of]["medians"][measure] / entry[to]["medians"][measure]
