# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The results for people: what must hold, then medians and ratios, in Markdown."""

import bounds
import contestants
import growth
import measure
import transfers

NAME = "countersign"
REFERENCES = ("nginx", "envoy")


def markdown(document, plan):
    results, names = document["results"], document["contestants"]
    lines = [
        "# Side by side", "",
        f"Medians of interleaved rounds of {plan.seconds} s; keep-alive, one worker each, no access log. {NAME} with a session established, "
        "metrics and all checks on; the others with a static `Authorization`. CPU is that of the whole process tree. "
        "The ratios are the point: the figures are another machine's tomorrow.", "",
        *(["**A quick run: too short to judge anything by.**", ""] if plan.is_quick else []),
        *(f"- not in this run: {text}" for text in document["missing"]), "",
        "## What must hold", "", "| measure | bound | measured | |", "|---|---|---:|---|",
        *(f"| {text} | {bound} | {value} | {'holds' if holds else '**does not hold**'} |"
          for text, bound, value, holds in bounds.judged(results, plan)), ""]
    if results.get("requests"):
        lines += ["## Requests", ""]
        for scenario, entry in results["requests"].items():
            lines += _table(scenario, measure.MEASURES, entry, names)
            if "nginx" not in entry:
                lines += ["nginx speaks no HTTP/2 to upstreams.", ""]
    if results.get("workers"):
        lines += ["## One worker and two", ""]
        for scenario, entry in results["workers"].items():
            lines += _table(scenario, measure.MEASURES, entry, [NAME, contestants.TWO_WORKERS])
    if results.get("sessions"):
        lines += ["## Kinds of session, of one daemon", ""]
        for scenario, entry in results["sessions"].items():
            lines += _table(scenario, measure.MEASURES, entry, [*map(contestants.session_name, contestants.SESSIONS), contestants.ENVOY_SIGNING])
    if results.get("transfers"):
        lines += ["## Long bodies, every mebibyte compared", ""]
        for scenario, entry in results["transfers"].items():
            lines += _table(scenario, transfers.MEASURES, entry, names)
    lines += _process(results, names)
    if results.get("storms"):
        lines += ["## Login storm", "", "| requests at once | logins | errors | p50, s | p99, s | last, s |", "|---:" * 6 + "|"]
        lines += ["| " + " | ".join(str(storm[key]) for key in ("requests", "logins", "wrong", "p50", "p99", "last")) + " |"
                  for storm in results["storms"]]
        lines += ["", "No session yet; the login itself takes 0.25 s.", ""]
    if results.get("growth"):
        lines += _growth(results["growth"], names)
    lines += ["## The machine", "", *(f"- {key}: {value}" for key, value in document["machine"].items())]
    return "\n".join(lines) + "\n"


def _table(title, measures, entry, names):
    present = [name for name in names if name in entry]
    references = [name for name in REFERENCES if name in present]
    lines = [*_head([title, *present, *(f"{NAME} / {name}" for name in references)])]
    for key, text in measures.items():
        values = {name: entry[name]["medians"][key] for name in present}
        ratios = [f"{values[NAME] / values[name]:.2f}" if values.get(NAME) and values[name] else "" for name in references]
        lines.append(_row(text, [_number(values[name]) for name in present] + ratios))
    return lines + [""]


def _process(results, names):
    rows = {
        "started within, s": ("start", lambda value: f"{value:.3f}"),
        "memory when idle, MB": ("idle_kib", lambda value: f"{value * 1024 / 1e6:.1f}"),
        "memory after the load, MB": ("loaded_kib", lambda value: f"{value * 1024 / 1e6:.1f}"),
        "memory for an idle connection, KiB": ("idle_connection", lambda value: f"{value / 1024:.1f}"),
    }
    present = [name for name in names if any(name in results.get(key, {}) for key, _ in rows.values())]
    if not present:
        return []
    lines = ["## Processes", "", *_head(["", *present])]
    for title, (key, text) in rows.items():
        if results.get(key):
            lines.append(_row(title, [text(results[key][name]) if name in results[key] else "" for name in present]))
    return lines + [""]


def _growth(results, names):
    lines = ["## How cost grows", ""]
    present = [name for name in names if any(name in entry for entry in results.values())]
    rows = []
    for part, entry in results.items():
        if any("ratio" in each for each in entry.values()):
            cells = [entry.get(name, {}) for name in present]
            rows.append(_row(part, [
                f"{_number(cell['few'])}, {_number(cell['many'])}: {cell['ratio']:.2f}" if "ratio" in cell else "" for cell in cells]))
    if rows:
        lines += ["CPU of one or few, of many, and the ratio: in µs of a request or login, in ms of a start.", "", *_head(["", *present]), *rows, ""]
    rows = []
    for part, key, text in growth.FIGURES:
        cells = [results.get(part, {}).get(name, {}).get(key) for name in present]
        if any(cell is not None for cell in cells):
            rows.append(_row(text, ["" if cell is None else f"{cell:.2f}" for cell in cells]))
    if rows:
        lines += [*_head(["with many", *present]), *rows, ""]
    return lines


def _head(columns):
    return [_row(columns[0], columns[1:]), "|---" + "|---:" * (len(columns) - 1) + "|"]


def _row(first, others):
    return "| " + " | ".join([first, *others]) + " |"


def _number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"
