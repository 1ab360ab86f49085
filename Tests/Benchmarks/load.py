# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The load: wrk, with its figures in a form for programs."""

import json
import re
import subprocess

from machine import program

# wrk's own print-out rounds; what it hands to a script does not. Latencies are in microseconds.
SCRIPT = """
wrk.method = "%(method)s"
wrk.body = %(body)s
done = function(summary, latency, requests)
    io.write(string.format(
        'FIGURES {"requests": %%d, "microseconds": %%d, "p50": %%d, "p99": %%d, "bad_status": %%d, "lost": %%d}\\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), summary.errors.status,
        summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
"""


def script(folder, scenario):
    """The file that tells wrk what to send."""
    path = f"{folder}/load-{re.sub('[^0-9A-Za-z]+', '-', scenario.name)}.lua"
    with open(path, "w") as file:
        if scenario.body_bytes:
            file.write(SCRIPT % {"method": "POST", "body": f'string.rep("x", {scenario.body_bytes})'})
        else:
            file.write(SCRIPT % {"method": "GET", "body": "nil"})
        file.write(scenario.more_script)
    return path


def run(script_path, port, scenario, seconds):
    """One round against a port; the figures of `SCRIPT`."""
    command = [
        program("wrk"), "-t1", f"-c{scenario.connections}", f"-d{seconds}s", "--timeout", "5s", "-s", script_path,
        f"http://127.0.0.1:{port}{scenario.path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30)
    for line in done.stdout.splitlines():
        if line.startswith("FIGURES "):
            return json.loads(line.removeprefix("FIGURES "))
    raise RuntimeError(f"wrk failed: {done.stdout}{done.stderr}")
