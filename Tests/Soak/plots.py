# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Lines over time as SVG, one panel below the other, with what happened when."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, GAP = 1000, 130, 70, 46, 44
COLOURS = {"restart": "#1565c0", "crash": "#c0392b", "reload": "#cfd8dc", "fault": "#e59866", "rotation": "#2e7d32",
           "wrong password": "#8e44ad", "drop": "#7f8c8d"}


def draw(title, panels, events, seconds, kinds):
    """`panels` are titles and points of time and value, where None is a gap; `events` of those `kinds` become marks."""
    height = TOP + len(panels) * (HEIGHT + GAP) + 10
    parts = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->", "<!-- Copyright the Countersign authors -->",
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>', _text(LEFT, 18, title, 15)]
    place = LEFT
    for kind in kinds:
        parts += [f'<rect x="{place}" y="28" width="10" height="10" fill="{COLOURS[kind]}"/>', _text(place + 14, 37, kind)]
        place += 14 + 8 * len(kind) + 16
    for number, (name, points) in enumerate(panels):
        parts += _panel(TOP + 18 + number * (HEIGHT + GAP), name, points, events, seconds, kinds)
    return "\n".join(parts + ["</svg>", ""])


def _panel(top, name, points, events, seconds, kinds):
    values = [value for _, value in points if value is not None]
    highest = _round_up(max(values, default=1) or 1)
    parts = [_text(LEFT, top - 4, f"{name} (highest {max(values, default=0):g})")]
    for share in (0, 0.5, 1):
        y = top + HEIGHT * (1 - share)
        parts += [f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#ddd"/>', _text(LEFT - 6, y + 4, f"{highest * share:g}", anchor="end")]
    for event in events:
        if event.kind in kinds:
            x = LEFT + WIDTH * event.at / seconds
            length = HEIGHT if event.kind in ("restart", "crash") else 12
            parts.append(f'<path d="M{x:.1f} {top}v{length}" stroke="{COLOURS[event.kind]}" stroke-width="1"/>')
    path, pen = [], "M"
    for moment, value in points:
        if value is None:
            pen = "M"
            continue
        path.append(f"{pen}{LEFT + WIDTH * moment / seconds:.1f} {top + HEIGHT * (1 - value / highest):.1f}")
        pen = "L"
    parts.append(f'<path d="{"".join(path)}" fill="none" stroke="#222" stroke-width="1.4"/>')
    minutes = seconds / 60
    step = max(1, round(minutes / 10))
    for minute in range(0, int(minutes) + 1, step):
        parts.append(_text(LEFT + WIDTH * minute * 60 / seconds, top + HEIGHT + 14, f"{minute} min", anchor="middle", size=10))
    return parts


def _round_up(value):
    power = 10 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if power * step >= value)


def _text(x, y, text, size=12, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#222">{escape(text)}</text>'
