# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The results: figures as JSON, a page for people, and the plots."""

import json
import os
from collections import Counter

import oracles
import plots

SAMPLED = ("pid", "rss", "descriptors", "threads", "latches", "held", "answered", "failed", "load")
PROCESS = ("restart", "crash")
OTHERS = ("reload", "fault", "rotation", "wrong password", "drop", "restart", "crash")


def write(folder, soak):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "results.json"), "w") as file:
        json.dump(_document(soak), file, indent=1, default=str)
        file.write("\n")
    for name, (title, kinds, keys) in {
            "process": ("The process", PROCESS, {
                "rss": "resident memory, MiB", "anonymous": "of that anonymous, MiB", "descriptors": "descriptors",
                "threads": "threads", "load": "share of one processor"}),
            "traffic": ("Logins and requests", OTHERS, {
                "latches": "closed latches", "held": "sessions held", "rate": "right answers each second",
                "errors": "other answers each second", "connections": "connections of callers"})}.items():
        panels = [(title, _points(soak["samples"], key)) for key, title in keys.items()]
        with open(os.path.join(folder, f"{name}.svg"), "w") as file:
            file.write(plots.draw(title, panels, soak["events"], soak["seconds"], kinds))
    with open(os.path.join(folder, "results.md"), "w") as file:
        file.write(_page(soak))


def _points(samples, key):
    points, pid = [], None
    for sample in samples:
        if pid not in (None, sample["pid"]) and key in ("rss", "anonymous", "descriptors", "threads"):
            points.append((sample["offset"], None))
        pid = sample["pid"]
        points.append((sample["offset"], sample.get(key)))
    return points


def _document(soak):
    return {
        "machine": soak["machine"], "seconds": round(soak["seconds"]), "seed": soak["seed"], "findings": soak["findings"], "repeated_nonce_counts": soak["repeated"], "longest_stall": round(soak["stall"], 2),
        "counts": soak["counts"], "explained": soak["explained"], "logins": soak["logins"], "log": soak["log"],
        "baseline": soak["baseline"], "warm_rss": soak["warm"], "last": soak["last"],
        "events": [[round(event.at), event.name, event.result] for event in soak["events"]],
        "sampled": ["seconds", *SAMPLED],
        "samples": [
            [sample["offset"], *(sample.get(key) for key in SAMPLED)]
            for sample in soak["samples"]]}


def _page(soak):
    kinds, counts = Counter(event.kind for event in soak["events"]), soak["counts"]
    faults = Counter(event.variant for event in soak["events"] if event.kind == "fault")
    baseline, last = soak["baseline"], soak["last"]
    rows = [
        ("duration", f"{soak['seconds'] / 60:.1f} minutes, of which the last {soak['quiet']:.0f} s without callers"),
        ("requests", f"{counts['requests']:,}"), ("answered as they must be", f"{counts['answered']:,}"),
        ("other answers, all explained by an event" if not soak["findings"] else "other answers", f"{counts['failed']:,}"),
        ("asked again after a connection at rest had ended", f"{counts['asked again']:,}"),
        ("requests with effects, answered with 200", f"{counts['effects']:,}"),
        ("restarts; crashes", f"{kinds['restart']}; {kinds['crash']}"), ("reloads (every fifth refused)", kinds["reload"]),
        ("rotations; wrong values; sessions dropped", f"{kinds['rotation']}; {kinds['wrong password']}; {kinds['drop']}"),
        ("faults", ", ".join(f"{name} {count}" for name, count in sorted(faults.items()))),
        ("median, 99th percentile of right answers", f"{soak['median'] * 1000:.1f} ms, {soak['p99'] * 1000:.0f} ms"),
        ("longest pause of callers and upstreams themselves", f"{soak['stall']:.2f} s"),
        ("counts of Digest nonces used twice, just after a crash", soak["repeated"]),
        ("findings", len(soak["findings"]))]
    lines = [
        "# A day of life", "",
        "The daemon with eight upstreams, each behind another kind of login, 200 callers and a schedule of faults. "
        "`make soak HOURS=1` runs it; [process.svg](process.svg) and [traffic.svg](traffic.svg) show each figure over time.", "",
        "| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows), "",
        "## Afterwards", "",
        "| | in the beginning | at the end | bound |", "|---|---:|---:|---|",
        f"| resident memory, MiB | {soak['warm']} (half a minute after the last restart) | {last['rss']} | {oracles.MEMORY} more |",
        f"| descriptors | {baseline['descriptors']} | {last['descriptors']} | {oracles.DESCRIPTORS} more |",
        f"| threads | {baseline['threads']} | {last['threads']} | no more |",
        f"| closed latches | {baseline['latches']} | {last['latches']} | 0 |",
        f"| sessions held | {baseline['held']} | {last['held']} | the same |",
        f"| exchanges under way | {baseline['running']} | {last['running']} | 0 |", "",
        "## Logins at the servers", "", "| upstream | logins | the schedule explains |", "|---|---:|---:|",
        *(f"| {name} | {count} | {most} |" for name, (count, most) in soak["logins"].items()), "",
        "## Other answers, and the event that explains them", "", "| answer (event) | requests |", "|---|---:|",
        *(f"| {name} | {count} |" for name, count in sorted(soak["explained"].items())), "",
        "## Lines of the log above notice", "", "| line | times |", "|---|---:|",
        *(f"| {name} | {count} |" for name, count in sorted(soak["log"].items())), "",
        "## Findings", "", *(f"- {text}" for text in soak["findings"] or ["none"]), "",
        "## The machine", "", *(f"- {key}: {value}" for key, value in soak["machine"].items())]
    return "\n".join(lines) + "\n"
