# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The results as a picture: bars beside one another, each group a scenario."""

import os
import sys

from machine import TOOLS

COLOURS = {
    "countersign": "#c0392b", "other build": "#e59866", "nginx": "#2e7d32", "haproxy": "#1565c0", "envoy": "#8e44ad",
    "caddy": "#7f8c8d"}


def draw(document, path):
    """Whether there was anything to draw. An `ImportError` where Matplotlib is missing."""
    os.environ.setdefault("MPLCONFIGDIR", os.path.join(TOOLS, "../matplotlib"))
    sys.path.append(TOOLS)
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    requests, transfers = document["results"].get("requests", {}), document["results"].get("transfers", {})
    panels = [
        ("CPU per request, µs (log)", _medians(requests, "cpu"), True),
        ("p99 latency, µs (log)", _medians(requests, "p99"), True),
        ("requests per second (log)", _medians(requests, "rate"), True),
        ("long bodies, MB per second of CPU", _medians(transfers, "per_cpu_second"), False),
    ]
    panels = [panel for panel in panels if panel[1]]
    if not panels:
        return False
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(12, 3.4 * len(panels)), squeeze=False)
    for axis, (title, values, is_logarithmic) in zip(axes[:, 0], panels):
        _bars(axis, title, values, document["contestants"], is_logarithmic)
    axes[0, 0].legend(ncols=len(document["contestants"]), fontsize=8, loc="upper left")
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    pyplot.close(figure)
    return True


def _medians(results, measure):
    return {
        scenario: {name: each["medians"][measure] for name, each in entry.items()} for scenario, entry in results.items()}


def _bars(axis, title, values, names, is_logarithmic):
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        places = [index for index, entry in enumerate(values.values()) if name in entry]
        heights = [entry[name] for entry in values.values() if name in entry]
        axis.bar([place + number * width - 0.4 + width / 2 for place in places], heights, width, label=name,
                 color=COLOURS.get(name))
    axis.set_title(title, fontsize=10, loc="left")
    axis.set_xticks(range(len(values)), [scenario.replace(", ", "\n") for scenario in values], fontsize=7)
    if is_logarithmic:
        axis.set_yscale("log")
    axis.grid(axis="y", alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
