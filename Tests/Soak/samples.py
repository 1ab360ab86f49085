# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""What the daemon is and holds at one moment: of /proc, and of its own metrics."""

import asyncio
import os
import re
import time

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE = re.compile(r"^countersign_(\w+?)(?:\{(.*)\})? ([-+.\deE]+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')


def of_process(pid):
    """Memory in MiB, threads, descriptors, seconds of CPU."""
    values = {}
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name in ("VmRSS", "RssAnon"):
                values[name] = int(value.split()[0]) / 1024
            elif name == "Threads":
                values["threads"] = int(value)
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return {
        "rss": round(values["VmRSS"], 2), "anonymous": round(values["RssAnon"], 2), "threads": values["threads"],
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")), "cpu": (int(fields[11]) + int(fields[12])) / TICKS}


def descriptors(pid):
    """What each descriptor is, sorted; sockets without their numbers."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        found.append(re.sub(r"\[\d+\]", "", target))
    return sorted(found)


async def get(port, path):
    """Status and body of the admin listener's answer."""
    reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 10)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        text = await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
    head, _, body = text.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        whole, rest = b"", body
        while rest and (size := int(rest.partition(b"\r\n")[0], 16)):
            rest = rest.partition(b"\r\n")[2]
            whole, rest = whole + rest[:size], rest[size + 2:]
        body = whole
    return int(head.split()[1]), body.decode()


def parse(text):
    """The samples of our own metrics: name, labels and value."""
    for line in text.splitlines():
        if match := SAMPLE.match(line):
            yield match[1], dict(LABEL.findall(match[2] or "")), float(match[3])


async def of_daemon(pid, port):
    sample = of_process(pid)
    _, text = await get(port, "/metrics")
    sample |= {"latches": 0, "held": 0, "running": 0, "connections": 0}
    for name, labels, value in parse(text):
        if name == "latches":
            sample["latches"] += int(value)
        elif name == "sessions" and labels.get("state") == "held":
            sample["held"] += int(value)
        elif name == "exchanges_running":
            sample["running"] += int(value)
        elif name == "connections":
            sample["connections"] += int(value)
    sample["time"] = time.time()
    return sample
