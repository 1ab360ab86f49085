# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The result for people: medians and ratios in Markdown."""

from measure import MEASURES

# What must hold at 64 connections and 65-byte answers, and when idle.
MOST_CPU_RATIO = 2.2
MOST_IDLE_MIB = 25


def markdown(document):
    machine, plan, results = document["machine"], document["plan"], document["results"]
    lines = [
        f"Medians of {plan['rounds']} interleaved rounds of {plan['seconds_per_round']} s; answers of 65 bytes, keep-alive, "
        "one worker each; the last columns compare with nginx in the same run.", ""]
    names = list(results["memory"])
    ours, reference = names[:-1], names[-1]
    for entry in results["scenarios"]:
        medians = {name: entry["contestants"][name]["medians"] for name in names}
        lines += _head(entry["scenario"], ours, reference)
        for measure, title in MEASURES.items():
            lines.append(_row(title, {name: medians[name][measure] for name in names}, ours, reference))
        lines.append("")
    lines += _head("resident memory, MiB", ours, reference)
    for key, title in (("idle_kib", "before the first request"), ("after_load_kib", "after the load")):
        mebibytes = {name: results["memory"][name][key] / 1024 for name in names}
        lines.append(_row(title, mebibytes, ours, reference))
    lines += ["", *_bounds(results, ours[0], reference), "", *(f"- {key}: {value}" for key, value in machine.items())]
    return "\n".join(lines)


def _head(title, ours, reference):
    columns = [title, *ours, reference, *(f"{name} / {reference}" for name in ours)]
    return ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 1) + "|"]


def _row(title, values, ours, reference):
    texts = [title, *(_number(values[name]) for name in [*ours, reference])]
    for name in ours:
        texts.append(f"{values[name] / values[reference]:.2f}" if values[reference] else "")
    return "| " + " | ".join(texts) + " |"


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _bounds(results, name, reference):
    idle = results["memory"][name]["idle_kib"] / 1024
    yield _bound(f"idle memory {idle:.1f} MiB, at most {MOST_IDLE_MIB}", idle <= MOST_IDLE_MIB)
    for entry in results["scenarios"]:
        if entry["scenario"] == "GET, 64 connections":
            cpu = {each: entry["contestants"][each]["medians"]["cpu"] for each in (name, reference)}
            ratio = cpu[name] / cpu[reference]
            yield _bound(f"CPU per request {ratio:.2f} of {reference}'s, at most {MOST_CPU_RATIO}", ratio <= MOST_CPU_RATIO)


def _bound(text, holds):
    return f"- {'holds' if holds else '**DOES NOT HOLD**'}: {text}"
