# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The configuration of an application as `countersign learn` prints it, without a line by hand."""

import os
import re
import subprocess

from processes import NotReady

MOST_SECONDS = 120


def configuration(application, binary):
    """Runs `learn` at the application's page for users, with its credential. Returns `upstreams` and `challenges`."""
    name, path = application.name, application.learned_at or application.page[0]
    variable = "COUNTERSIGN_" + re.sub(r"\W", "_", name).upper()
    values = {"username": application.username, "password": application.password}
    environment = {f"{variable}__{field.upper()}": values[field] for field in application.fields}
    command = [os.path.abspath(binary), "learn", f"http://127.0.0.1:{application.public_port}{path}", "--credential", name, "--yes"]
    recording = application.recording()
    if recording is not None:
        command += ["--har", recording]
    provider = getattr(application, "idp", None)
    if provider is not None:
        command += ["--through", provider]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=MOST_SECONDS, env={**os.environ, **environment}, errors="replace",
            stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise NotReady(f"learn took longer than {MOST_SECONDS} s") from None
    with open(application.path("learned"), "w") as file:
        file.write(done.stderr + done.stdout)
    for secret in (application.password, application.wrong_password):
        assert secret not in done.stdout + done.stderr, "learn printed a password"
    if done.returncode != 0:
        raise NotReady(f"learn ended with {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
    text = done.stdout[done.stdout.index("upstreams:"):]
    # Comments are for readers; the check of the lines counts none.
    text = re.sub(r"(?m)\s+# .*$", "", text)
    for written, real in application.addresses.items():
        text = text.replace(real, written)
    return text
