# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The servers of a run: the upstream, and the proxies that are compared."""

import contextlib
import http.client
import os
from dataclasses import dataclass

import configurations
from machine import program
from processes import Server, free_port, wait_until


class NotReady(Exception):
    """A server did not come up, or does not answer as it should."""


@dataclass
class Contestant:
    name: str
    server: Server
    port: int
    idle_kib: int = 0


@contextlib.contextmanager
def stage(folder, binary, other_binary=None):
    """The contestants, the one that the others are compared with last; all ended at the end, whatever happens."""
    with contextlib.ExitStack() as ends:
        upstream_port = free_port()
        _nginx(ends, folder, "upstream", upstream_port, configurations.upstream)
        if ask(upstream_port, "/balance")[0] != 401:
            raise NotReady("the upstream answers without a token")
        proxies = [_countersign(ends, folder, "countersign", binary, upstream_port)]
        if other_binary:
            proxies.append(_countersign(ends, folder, "other build", other_binary, upstream_port))
        port = free_port()
        server = _nginx(
            ends, folder, "nginx", port, lambda own, port: configurations.static_proxy(own, port, upstream_port))
        proxies.append(Contestant("nginx", server, port))
        for proxy in proxies:
            proxy.idle_kib = proxy.server.resident_kib()
        for proxy in proxies:
            _check(proxy)
        yield proxies


def streaming(ends, folder, binary, upstream_port):
    """The daemon, and nginx that hands bodies on as they come."""
    port = free_port()
    ours = _countersign(ends, folder, "countersign", binary, upstream_port)
    server = _nginx(
        ends, folder, "nginx", port, lambda own, port: configurations.static_proxy(own, port, upstream_port, True))
    return [ours, Contestant("nginx", server, port)]


def ask(port, path):
    """Status and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def _check(proxy):
    # The first request wins the session; the second goes with it.
    for _ in range(2):
        status, body = ask(proxy.port, "/balance")
        if (status, body) != (200, configurations.ANSWER):
            raise NotReady(f"{proxy.name} answers {status}: {body[:300]}\n{proxy.server.last_words()}")


def _nginx(ends, folder, name, port, configuration):
    own = _own_folder(folder, name)
    with open(f"{own}/nginx.conf", "w") as file:
        file.write(configuration(own, port))
    command = [program("nginx"), "-p", own, "-c", f"{own}/nginx.conf", "-e", f"{own}/error.log"]
    return _start(ends, name, command, own, port)


def _countersign(ends, folder, name, binary, upstream_port):
    own, port = _own_folder(folder, name.replace(" ", "-")), free_port()
    with open(f"{own}/countersign.yaml", "w") as file:
        file.write(configurations.countersign(port, upstream_port))
    environment = configurations.countersign_environment(own)
    command = [os.path.abspath(binary), "serve", "--config", f"{own}/countersign.yaml"]
    return Contestant(name, _start(ends, name, command, own, port, environment), port)


def _start(ends, name, command, folder, port, environment=None):
    server = Server(command, f"{folder}/output", environment)
    ends.callback(server.end)
    if not wait_until(lambda: server.has_ended() or _listens(port), 15) or server.has_ended():
        raise NotReady(f"{name} does not start\n{server.last_words()}")
    return server


def _listens(port):
    # Asked of the kernel, so that no connection is made to a server whose idle memory is still to be read.
    wanted = f"0100007F:{port:04X}"
    with open("/proc/net/tcp") as file:
        return any(line.split()[1] == wanted and line.split()[3] == "0A" for line in file)


def _own_folder(folder, name):
    own = os.path.join(folder, name)
    for path in (own, f"{own}/state", f"{own}/run"):
        os.makedirs(path, mode=0o700)
    return own
