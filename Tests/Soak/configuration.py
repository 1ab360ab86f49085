# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The daemon's configuration and its file of credentials, written anew for each reload and each rotation."""

import os

from processes import free_port


class Configuration:
    def __init__(self, folder, upstreams):
        self.folder, self.upstreams = folder, upstreams
        self.path = os.path.join(folder, "countersign.yaml")
        self.admin_port = free_port()
        self.values = {upstream.name: upstream.protection.value() for upstream in upstreams.values()}
        self.number = 0

    def write_values(self, **changed):
        """Writes the credentials, after those changes."""
        self.values |= changed
        lines = []
        for name, upstream in self.upstreams.items():
            if field := upstream.protection.field:
                for key, value in {**upstream.protection.others, field: self.values[name]}.items():
                    lines.append(f"COUNTERSIGN_{name.upper()}__{key.upper().replace('-', '_')}={value}\n")
        self._replace(os.path.join(self.folder, "secrets.env"), "".join(lines))

    def write(self, number=0, is_broken=False):
        """Writes the configuration; those of two numbers differ in what a reload may change, that of 0 is the first."""
        routes = [f"    - {{ path: /{name}/, upstream: {name}, strip-prefix: true }}" for name in self.upstreams]
        if number % 3 == 1:
            routes.insert(0, "    - { path: /spare/, upstream: spare, strip-prefix: true }")
        lines = ["listeners:", "  - address: systemd:http", "    routes:", *routes]
        if number % 2 == 1:
            lines.append(f"  - {{ address: 'unix:{self.folder}/run/extra-{number % 4}.sock', upstream: plain }}")
        lines += [f"admin: {{ address: ['unix:{self.folder}/run/admin.sock', '127.0.0.1:{self.admin_port}'] }}", "upstreams:"]
        for name, upstream in self.upstreams.items():
            lines += [f"  {name}:", f"    url: {upstream.protection.origin}/",
                      f"    timeouts: {{ connect: 2s, response: {5 + number % 2}s, login: 8s }}"]
        if number % 3 == 1:
            lines.append("  spare: http://127.0.0.1:9/")
        lines += [f"credentials: {{ sources: [{{ env: {self.folder}/secrets.env }}] }}", "challenges:"]
        for name, upstream in self.upstreams.items():
            if challenge := upstream.protection.challenge():
                lines.append(f"  - {{ name: {name}, upstream: {name}, credential: {name}, {challenge} }}")
        lines += [f"limits: {{ callers: {1024 + 64 * (number % 2)}, head: {64 + number % 5}KiB }}",
                  "log: { level: info, format: json }", "workers: 2"]
        if is_broken:
            lines.append("nonsense: true")
        self._replace(self.path, "\n".join(lines) + "\n")

    def _replace(self, path, text):
        with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        os.replace(path + ".new", path)
