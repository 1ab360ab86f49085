# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The servers of a run: the upstreams, and the proxies that are compared."""

import contextlib
import http.client
import os
import shutil
import subprocess
import time
from dataclasses import dataclass

import configurations
import others
import streams
from machine import program
from processes import Server, free_port, wait_until

# The upstreams: HTTP/1.1, the same by TLS, HTTP/2 by TLS, that of HTTP/1.1 for requests that are kept whole, and the one of long bodies.
KINDS = ("plain", "tls", "h2", "spooled", "bodies")
# The kinds of session, each at a server of its own; the first is the token's.
SESSIONS = ("plain", "cookies", "digest", "realms", "fixed", "signed")
# Envoy, where it signs requests too.
ENVOY_SIGNING = "envoy, signed"
# The daemon again, with a worker for each of two cores.
TWO_WORKERS = "two workers"


class NotReady(Exception):
    """A server did not come up, or does not answer as it should."""


@dataclass
class Contestant:
    """A proxy that runs; a port before each kind of upstream that it can speak with; seconds from its start until it listened."""
    name: str
    server: Server
    ports: dict
    start: float = 0


def available(binary, other_binary=None, only=None):
    """The names of those that can take part, the daemon first, each with its program; and why others cannot."""
    found, missing = {"countersign": os.path.abspath(binary)}, []
    if other_binary:
        found["other build"] = os.path.abspath(other_binary)
    for name, where in (("nginx", "nginx"), ("haproxy", "haproxy"), ("envoy", "envoy"), ("caddy", "caddy")):
        if only is not None and name not in only and name != "nginx":
            continue
        path = program(where)
        if os.path.isabs(path):
            found[name] = path
        else:
            missing.append(f"{name}: not installed; left out (Tests/Benchmarks/fetch tries to get it)")
    return found, missing


@contextlib.contextmanager
def upstreams(folder):
    """The upstreams; what they are reached by and trusted for."""
    with contextlib.ExitStack() as ends:
        own = _own_folder(folder, "upstream")
        certificate, key = f"{own}/certificate.pem", f"{own}/key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", f"/CN={configurations.TLS_NAME}", "-addext", f"subjectAltName=DNS:{configurations.TLS_NAME},IP:127.0.0.1",
             "-keyout", key, "-out", certificate], check=True, capture_output=True)
        os.makedirs(f"{own}/files")
        for size in (16384, 1 << 20):
            with open(f"{own}/files/{size}", "wb") as file:
                file.write(os.urandom(size))
        bodies = streams.Upstream(configurations.TOKEN)
        ends.callback(bodies.end)
        ports = {kind: free_port() for kind in KINDS[:3] + SESSIONS[1:]}
        _nginx(ends, own, "upstream", ports["plain"], configurations.upstream(own, ports, certificate, key))
        if ask(ports["plain"], "/balance")[0] != 401:
            raise NotReady("the upstream answers without a token")
        yield {"ports": {**ports, "spooled": ports["plain"], "bodies": bodies.port}, "authority": certificate}


@contextlib.contextmanager
def stage(folder, programs, behind, name=None, token_port=None):
    """The contestants, or the one of that name, as they are before their first request; all ended at the end."""
    with contextlib.ExitStack() as ends:
        proxies = []
        for each, path in programs.items():
            if name in (None, each):
                proxies.append(_proxy(ends, folder, each, path, behind, token_port))
        yield proxies


@contextlib.contextmanager
def sessions(folder, binary, behind, envoy=None):
    """The daemon, as a contestant for each kind of session that it holds: `token`, then the others by their names.

    With `envoy`, that program as well, where it signs requests.
    """
    with contextlib.ExitStack() as ends:
        own = _own_folder(folder, "countersign")
        ports = {kind: free_port() for kind in SESSIONS}
        with open(f"{own}/configuration", "w") as file:
            file.write(configurations.countersign(own, ports, behind["ports"], behind["authority"]))
        command = [binary, "serve", "--config", f"{own}/configuration"]
        server = _start(ends, "countersign", command, own, ports["plain"], configurations.countersign_environment(own))
        kinds = [Contestant(session_name(kind), server, {"plain": port}) for kind, port in ports.items()]
        if envoy:
            own, port = _own_folder(folder, "envoy"), free_port()
            with open(f"{own}/envoy.json", "w") as file:
                file.write(others.signing_envoy(port, behind["ports"]["signed"]))
            command = [envoy, "-c", f"{own}/envoy.json", "--concurrency", "1", "--disable-hot-restart", "-l", "error"]
            environment = {"PATH": os.environ.get("PATH", ""), "HOME": own, **others.SIGNING_ENVIRONMENT}
            kinds.append(
                Contestant(ENVOY_SIGNING, _start(ends, "envoy", command, own, port, environment), {"plain": port}))
        yield kinds


def session_name(kind):
    """The name under which results have a kind of session."""
    return "token" if kind == "plain" else kind


def alone(ends, folder, binary, upstream_port, wrap, more_environment):
    """The daemon before one upstream of HTTP/1.1, started by another program or with more in its environment.

    Its listeners are those of a session with a token, of one made of cookies, of Digest, of realms that are told apart, of a
    fixed field, and of requests that are signed.
    """
    own = _own_folder(folder, "countersign")
    ports = {kind: free_port() for kind in SESSIONS}
    with open(f"{own}/configuration", "w") as file:
        file.write(configurations.countersign(own, ports, dict.fromkeys(ports, upstream_port), authority=None))
    command = wrap([os.path.abspath(binary), "serve", "--config", f"{own}/configuration"])
    environment = {**configurations.countersign_environment(own), **more_environment}
    server = _start(ends, "countersign", command, own, ports["plain"], environment)
    ends.callback(server.kill)
    return Contestant("countersign", server, ports)


def with_workers(ends, folder, name, path, upstream_port, workers):
    """The daemon, or nginx with `keepalive 32`, of that many workers before one upstream; its port."""
    port = free_port()

    def configuration(own):
        if name == "nginx":
            return configurations.static_proxy(own, {"plain": port}, {"plain": upstream_port}, None, workers, kept=32)
        return configurations.countersign(own, {"plain": port}, {"plain": upstream_port}, None, workers=workers)

    configured(ends, folder, name, path, configuration, port)
    return port


def configured(ends, folder, name, path, configuration, port, more_environment=None):
    """The daemon, or nginx, with what `configuration(own_folder)` says, once it listens at that port."""
    own = _own_folder(folder, name)
    with open(f"{own}/configuration", "w") as file:
        file.write(configuration(own))
    command, environment = [path, "serve", "--config", f"{own}/configuration"], configurations.countersign_environment(own)
    if path == program("nginx"):
        command = [path, "-p", own, "-c", f"{own}/configuration", "-e", f"{own}/error.log"]
    begin = time.monotonic()
    server = _start(ends, name, command, own, port, {**environment, **(more_environment or {})})
    return Contestant(name, server, {"plain": port}, time.monotonic() - begin)


def check(proxy):
    """Asks until it answers; then that everything is as it should be with each upstream."""
    for kind, port in proxy.ports.items():
        if kind == "bodies":
            streams.down(port, 100)
            continue
        # The first request logs in; the second goes with it.
        for _ in range(2):
            status, body = ask(port, "/balance")
            if (status, body) != (200, configurations.ANSWER):
                raise NotReady(f"{proxy.name} ({kind}) answers {status}: {body[:300]}\n{proxy.server.last_words()}")


def ask(port, path):
    """Status and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def _proxy(ends, folder, name, path, behind, token_port):
    own = _own_folder(folder, name.replace(" ", "-"))
    ports = {kind: free_port() for kind in KINDS}
    targets, authority = behind["ports"], behind["authority"]
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": own, "XDG_DATA_HOME": own, "XDG_CONFIG_HOME": own}
    if name == "nginx":
        del ports["h2"]  # It speaks no HTTP/2 to upstreams.
        text = configurations.static_proxy(own, ports, targets, authority)
        command = [path, "-p", own, "-c", f"{own}/configuration", "-e", f"{own}/error.log"]
    elif name == "haproxy":
        text = others.haproxy(ports, targets, authority)
        command = [path, "-db", "-f", f"{own}/configuration"]
    elif name == "envoy":
        text = others.envoy(ports, targets, authority)
        os.symlink("configuration", f"{own}/envoy.json")
        command = [path, "-c", f"{own}/envoy.json", "--concurrency", "1", "--disable-hot-restart", "-l", "error"]
    elif name == "caddy":
        text = others.caddy(ports, targets, authority)
        command = [path, "run", "--config", f"{own}/configuration", "--adapter", "caddyfile"]
        environment["GOMAXPROCS"] = "1"
    else:
        text = configurations.countersign(own, ports, targets, authority, token_port, workers=2 if name == TWO_WORKERS else 1)
        command = [path, "serve", "--config", f"{own}/configuration"]
        environment = configurations.countersign_environment(own)
    with open(f"{own}/configuration", "w") as file:
        file.write(text)
    begin = time.monotonic()
    server = _start(ends, name, command, own, ports["bodies"], environment)
    return Contestant(name, server, ports, time.monotonic() - begin)


def _nginx(ends, own, name, port, configuration):
    with open(f"{own}/nginx.conf", "w") as file:
        file.write(configuration)
    command = [program("nginx"), "-p", own, "-c", f"{own}/nginx.conf", "-e", f"{own}/error.log"]
    return _start(ends, name, command, own, port)


def _start(ends, name, command, folder, port, environment=None):
    server = Server(command, f"{folder}/output", environment)
    ends.callback(server.end)
    if not wait_until(lambda: server.has_ended() or _listens(port), 60) or server.has_ended():
        raise NotReady(f"{name} does not start\n{server.last_words()}")
    return server


def _listens(port):
    # Asked of the kernel, so that no connection is made to a server whose idle memory is still to be read.
    wanted = f"0100007F:{port:04X}"
    with open("/proc/net/tcp") as file:
        for line in file:
            fields = line.split(None, 4)
            if fields[1] == wanted and fields[3] == "0A":
                return True
    return False


def _own_folder(folder, name):
    """Empty, also where an earlier stage had it."""
    own = os.path.join(folder, name)
    shutil.rmtree(own, ignore_errors=True)
    for path in (own, f"{own}/state", f"{own}/run"):
        os.makedirs(path, mode=0o700)
    return own
