# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Requests under callgrind, for `profile` and `functions`: the file of a dump that has nothing but requests, and names in Swift."""

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile

import contestants
import counting
import streams


def parser(description):
    """The options that both have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("binary", help="the daemon, a release build with its symbols")
    made.add_argument("--request", choices=counting.REQUESTS, default="GET of 65 bytes")
    made.add_argument("--requests", type=int, default=200, help="how many are counted")
    made.add_argument("--grep", metavar="WORD", default="", help="only functions whose name holds it")
    return made


def with_dump(program, options, body):
    """Calls `body` with the file of a dump; ends `program` with a sentence where there can be none."""
    if not shutil.which("valgrind"):
        sys.exit(f"{program}: there is no valgrind: Tests/Benchmarks/fetch installs it")
    try:
        with tempfile.TemporaryDirectory(prefix=f"countersign-{program}-") as folder:
            body(_dumped(options, folder))
    except (contestants.NotReady, streams.Broken, OSError) as error:
        sys.exit(f"{program}: {error}")


def _dumped(options, folder):
    with contextlib.ExitStack() as ends:
        upstream = counting.Upstream()
        ends.callback(upstream.end)
        counter = counting.Instructions(folder)
        proxy = contestants.alone(ends, folder, options.binary, upstream.port, counter.command, counter.environment())
        callers, request = counting.Callers(proxy.ports), counting.REQUESTS[options.request]
        callers.ask(request, 128)
        counter.counted()
        callers.ask(request, options.requests)
        counter.counted()
        return counter.dumps()[-1]


def demangled(names, *options):
    """The names as Swift writes them; `options` are those of `swift demangle`."""
    if not shutil.which("swift"):
        return names
    command = ["swift", "demangle", *options]
    done = subprocess.run(command, input="\n".join(names), capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else names
