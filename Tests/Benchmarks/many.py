# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Configurations with many of one thing: routes, upstreams, location patterns, tokens of callers, realms. Only the number differs."""

import os

import configurations
from configurations import ANSWER, MOST_CONNECTIONS

# One file of the upstream: more than what a proxy and the kernel hold of it on its way to a caller who does not read.
BIG = 4 << 20


def path(number):
    return f"/r{number:05d}/"


def host(number):
    return f"h{number:05d}.localhost"


def token(number):
    return f"token-of-caller-{number:06d}"


def upstream(folder, ports):
    """Answers to everybody (`open`), to whoever has a password (`basic`), or one for the realm of the path (`realms`)."""
    with open(f"{folder}/big", "wb") as file:
        file.truncate(BIG)
    return configurations.nginx(folder, f"""
        server {{
            listen 127.0.0.1:{ports["open"]} backlog=8192 sndbuf=64k; default_type application/json;
            location / {{ return 200 '{ANSWER}'; }}
            location = /big {{ root {folder}; }}
        }}
        {configurations.challenging(ports["basic"], configurations.CHALLENGES[1])}
        server {{
            listen 127.0.0.1:{ports["realms"]} backlog=8192; default_type application/json;
            location ~ ^/s(?<number>[0-9]+)/ {{
                if ($http_authorization = "") {{ add_header WWW-Authenticate 'Basic realm="r$number"' always; return 401; }}
                return 200 '{ANSWER}';
            }}
        }}""", connections=MOST_CONNECTIONS)


def nginx_routes(folder, port, upstream_port, kind, count):
    """nginx with as many locations, or servers told apart by their names."""
    forward = 'proxy_pass http://open; proxy_http_version 1.1; proxy_set_header Connection "";'
    if kind == "path":
        locations = "".join(f"location {path(number)} {{ {forward} }}\n" for number in range(count))
        servers = f"server {{ listen 127.0.0.1:{port} backlog=8192; {locations} }}"
    else:
        servers = "".join(
            f"server {{ listen 127.0.0.1:{port}{' backlog=8192' if number == 0 else ''}; server_name {host(number)}; "
            f"location / {{ {forward} }} }}\n" for number in range(count))
    return configurations.nginx(folder, f"""
        server_names_hash_max_size 8192; server_names_hash_bucket_size 128;
        upstream open {{ server 127.0.0.1:{upstream_port}; keepalive 1024; keepalive_requests 1000000000; }}
        {servers}""", connections=MOST_CONNECTIONS)


def routes(folder, port, upstream_port, kind, count):
    """The daemon with routes by `path` or `host`, all to one upstream."""
    name = {"path": path, "host": host}[kind]
    listed = "".join(f"      - {{ {kind}: {name(number)}, upstream: up }}\n" for number in range(count))
    return _daemon(folder, port, _up(upstream_port), f"    routes:\n{listed}")


def upstreams(folder, port, count):
    """Upstreams with a challenge and a route each. Nobody is there, and nobody is asked."""
    listed = "".join(f"      - {{ path: {path(number)}, upstream: u{number} }}\n" for number in range(count))
    entries = "".join(f"  u{number}: http://127.1.{number // 250}.{number % 250 + 1}:9/\n" for number in range(count))
    challenges = "".join(
        f"  - {{ name: c{number}, upstream: u{number}, scheme: basic, credential: bench }}\n" for number in range(count))
    return _daemon(folder, port, entries, f"    routes:\n{listed}", challenges)


def patterns(folder, port, upstream_port, count):
    """One upstream with a challenge at each of many location patterns."""
    return _daemon(folder, port, _up(upstream_port), "    upstream: up\n", "".join(
        f'  - {{ name: c{number}, at: "http://127.0.0.1:{upstream_port}{path(number)}*", scheme: basic, credential: bench }}\n'
        for number in range(count)))


def realms(folder, port, upstream_port, count):
    """One upstream with a challenge for each of many realms."""
    return _daemon(folder, port, _up(upstream_port), "    upstream: up\n", "".join(
        f"  - {{ name: r{number}, upstream: up, scheme: basic, realm: r{number}, credential: bench }}\n" for number in range(count)))


def tokens(folder, port, upstream_port, count):
    """Callers known by tokens."""
    return _daemon(folder, port, _up(upstream_port), _with_tokens(count))


def sessions(folder, port, upstream_port, admin_port, count):
    """Callers known by tokens, each with a session of its own."""
    own = ", ".join(f"c{number}: c{number}" for number in range(count))
    return _daemon(
        folder, port, _up(upstream_port), _with_tokens(count),
        f"  - name: site\n    upstream: up\n    scheme: basic\n    credential: {{ by-caller: {{ {own} }} }}\n",
        f"127.0.0.1:{admin_port}")


def plain(folder, port, upstream_port):
    """The daemon with one of each."""
    return _daemon(folder, port, _up(upstream_port), "    upstream: up\n")


def credentials(folder, count):
    """Writes the credentials of that many callers; the variable that tells where they are."""
    own = f"{folder}/callers"
    os.makedirs(own, exist_ok=True)
    for number in range(count):
        for field, value in (("token", token(number)), ("username", f"u{number}"), ("password", "right")):
            with open(f"{own}/c{number}.{field}", "w") as file:
                file.write(value)
    return {"CREDENTIALS_DIRECTORY": own}


def _with_tokens(count):
    names = ", ".join(f"c{number}" for number in range(count))
    return f"    upstream: up\n    callers: {{ credentials: [{names}] }}\n"


def _up(port):
    return f"  up: {{ url: \"http://127.0.0.1:{port}/\", http: 1.1 }}\n"


def _daemon(folder, port, entries, listener, challenges="", admin=None):
    return f"""
listeners:
  - address: "127.0.0.1:{port}"
{listener}admin:
  address: "{admin or f'unix:{folder}/run/admin.sock'}"
upstreams:
{entries}{f'''challenges:
{challenges}''' if challenges else ''}credentials:
  sources: [env, systemd]
limits: {{ callers: {MOST_CONNECTIONS}, exchanges: {MOST_CONNECTIONS}, waiters: {MOST_CONNECTIONS} }}
workers: 1
log: {{ level: warning, format: text }}
"""
