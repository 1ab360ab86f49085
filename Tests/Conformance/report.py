# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The results of a run, for people and for programs."""

import judge


def shown(data, limit=600):
    """Bytes as a string literal, the middle of long ones left out."""
    data = bytes(data)
    text = repr(data if len(data) <= limit else data[:limit // 2] + b" ... " + data[-limit // 4:])[1:]
    return text + (f" ({len(data)} bytes)" if len(data) > limit else "")


def table(results_by_target):
    """Cases by family, and what failed at each target."""
    names = list(results_by_target)
    families = []
    for results in results_by_target.values():
        families += [each.case.family for each in results if each.case.family not in families]
    rows = [["family", "cases"] + names]
    for family in list(dict.fromkeys(families)) + ["all"]:
        row, cases = [family], 0
        for name in names:
            mine = [each for each in results_by_target[name] if family in (each.case.family, "all")]
            cases = max(cases, len(mine))
            row.append(_counts(mine))
        rows.append([family, str(cases)] + row[1:])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    legend = "failures as exploitable/must/should; - is none" if any("/" in line for line in lines) else ""
    return "\n".join(lines + ([legend] if legend else []))


def _counts(results):
    failed = [each.severity for each in results if each.findings]
    if not failed:
        return "-"
    return "/".join(str(failed.count(severity)) for severity in reversed(judge.SEVERITIES))


def failure(target, result):
    """One failed case with its bytes."""
    case = result.case
    lines = [f"{result.severity.upper()}  {target}  {case.id}  ({case.level}, RFC {case.section})  failed {result.failures} of {result.runs}",
            f"    {case.about}"]
    lines += [f"    {each.severity}: {each.text}" for each in result.findings]
    for number, data in result.sent.items():
        lines.append(f"    sent {number}:     {shown(data)}")
        lines.append(f"    received {number}: {shown(result.received[number])} [{result.ended[number]}]")
    for connection, head, body, complete in result.upstream:
        lines.append(f"    upstream, connection {connection}: {shown(head)}")
        if body or not complete:
            lines.append(f"        body: {shown(body)}{'' if complete else ' (not complete)'}")
    return "\n".join(lines)


def document(results_by_target, seconds):
    """Everything as a value for `json`."""
    return {
        name: {
            "seconds": round(seconds[name], 1),
            "cases": len(results),
            "failures": [
                {
                    "id": each.case.id, "section": each.case.section, "level": each.case.level,
                        "about": each.case.about,
                    "severity": each.severity, "findings": [[one.severity, one.text] for one in each.findings],
                    "sent": {n: data.decode("latin-1") for n, data in each.sent.items()},
                    "received": {n: data.decode("latin-1") for n, data in each.received.items()},
                    "ended": each.ended, "runs": each.runs, "failed": each.failures,
                    "upstream": [[n, head.decode("latin-1"), body.decode("latin-1"), complete] for n, head, body,
                        complete in each.upstream],
                } for each in results if each.findings],
        } for name, results in results_by_target.items()}
