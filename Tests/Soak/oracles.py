# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The judgement at the end: what the schedule does not explain is a finding."""

import json
import statistics
import time
from collections import Counter
from datetime import datetime

# Bounds of what may remain of a day: MiB of memory over the level after the start, descriptors, threads.
MEMORY, DESCRIPTORS, THREADS = 16, 2, 0
# Levels of the log that need an explanation.
SERIOUS = {"warning", "error", "critical"}
# A repeated message is logged half a minute later, with its count.
LOG_DELAY = 40


def few(findings, title):
    """A list of like findings, cut short."""
    return [f"{title}: {text}" for text in findings[:5]] + ([f"{title}: {len(findings) - 5} more"] if len(findings) > 5 else [])


def of_requests(callers, windows):
    explained, findings = Counter(), []
    for outcome in callers.outcomes:
        window = next((window for window in windows if window.explains(
            outcome.upstream, outcome.code, outcome.began, outcome.ended)), None)
        if window:
            explained[f"{outcome.code} ({window.why.rsplit(' ', 1)[0] if window.upstream != '*' else window.why})"] += 1
        else:
            findings.append(
                f"{outcome.method} {outcome.identifier} at {outcome.began:.2f}, {outcome.ended - outcome.began:.2f} s: "
                f"{outcome.status} {outcome.code}: {outcome.detail}")
    return explained, few(callers.findings, "answer") + few(findings, "unexplained")


def of_effects(callers, upstreams):
    """Each request that has effects was carried out once at most, and once if its caller was told so."""
    findings = []
    for name, upstream in upstreams.items():
        findings += [f"{key} was carried out {count} times" for key, count in upstream.carried_out.items() if count > 1]
    findings += [
        f"{key} was answered with 200 and never carried out"
        for name, key in callers.succeeded_posts if upstreams[name].carried_out[key] != 1]
    return few(findings, "effects")


def of_values(director, upstreams):
    findings = []
    for name, value in director.once:
        # Until it was accepted, if it ever was.
        arrived = upstreams[name].protection.arrivals(value)[0]
        if len(arrived) > 1:
            findings.append(f"{name}: the wrong value {value} arrived {len(arrived)} times within {arrived[-1] - arrived[0]:.2f} s")
    for name, value in director.retired:
        for arrived in upstreams[name].protection.arrivals(value):
            late = [moment for moment in arrived if moment > arrived[0] + 3]
            if late:
                findings.append(
                    f"{name}: {value} arrived {len(late)} times more than 3 s after its refusal, at most {late[-1] - arrived[0]:.1f} s")
    crashes = [event for event in director.events if event.kind == "crash"]
    repeated = upstreams["digest"].protection.repeated
    unexplained = [moment for moment in repeated if not any(event.began <= moment <= event.ended + 5 for event in crashes)]
    if unexplained:
        findings.append(f"digest: {len(unexplained)} counts of a nonce were used twice, and no crash was before")
    for upstream in upstreams.values():
        findings += upstream.problems
    return len(repeated), few(findings, "values")


def most_logins(upstream, events, seconds):
    """How many logins the schedule explains."""
    name, most = upstream.name, 1
    for event in events:
        if event.upstream == name:
            most += {"rotation": 2, "wrong password": 1, "drop": 1, "fault": 1}.get(event.kind, 0)
    if name == "bearer":
        most += int(seconds / 40)
    if name == "digest":
        most += int(seconds / 100)
    return most


def of_logins(upstreams, events, seconds):
    table, findings = {}, []
    for name, upstream in upstreams.items():
        if upstream.protection.has_sessions:
            most = most_logins(upstream, events, seconds)
            table[name] = [upstream.protection.logins, most]
            if upstream.protection.logins > most:
                findings.append(f"{name}: {upstream.protection.logins} logins, and the schedule explains {most}")
    return table, few(findings, "logins")


def of_rest(baseline, samples, last, ready):
    """Memory, descriptors, threads, latches and sessions after the quiet seconds."""
    findings = []
    own = [sample for sample in samples if sample["pid"] == last["pid"]]
    begin = own[0]["time"]
    early = [sample["rss"] for sample in own if 25 <= sample["time"] - begin <= 65] or [sample["rss"] for sample in own[:3]]
    warm = round(statistics.median(early), 2)
    if last["rss"] > warm + MEMORY:
        findings.append(f"{last['rss']} MiB at the end, {warm} MiB after the start")
    for key, bound in (("descriptors", DESCRIPTORS), ("threads", THREADS)):
        if last[key] > baseline[key] + bound:
            findings.append(f"{last[key]} {key} at the end, {baseline[key]} in the beginning")
    if last["latches"]:
        findings.append(f"{last['latches']} latches are closed")
    if last["held"] != baseline["held"]:
        findings.append(f"{last['held']} sessions are held, {baseline['held']} in the beginning")
    if last["running"]:
        findings.append(f"{last['running']} exchanges still run")
    if ready[0] != 200:
        findings.append(f"/readyz: {ready[0]} {ready[1]}")
    return warm, few(findings, "rest")


def of_log(path, events, windows):
    """The lines above notice, counted; and those that no event explains."""
    counts, findings = Counter(), []
    with open(path, errors="replace") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                findings.append(text.strip()[:300])
                continue
            if line["level"] not in SERIOUS:
                continue
            counts[f"{line['level']}: {line['message']}"] += 1
            moment = datetime.fromisoformat(line["time"]).timestamp()
            about = str(line.get("upstream") or line.get("challenge") or "")
            if not any(_explains(event, about, moment) for event in events) and not any(
                    window.upstream in ("*", about) and window.began - 1 <= moment <= window.ended + LOG_DELAY for window in windows):
                findings.append(text.strip()[:400])
    return counts, few(findings, "log")


def _explains(event, about, moment):
    if not event.began - 1 <= moment <= (event.ended or time.time()) + LOG_DELAY:
        return False
    if event.kind == "reload":
        return event.variant == "broken" and not about and moment <= event.ended + 2
    if event.upstream == "*":
        return event.kind in ("restart", "crash")
    return about == event.upstream
