# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""One reverse proxy in three configurations: each lane's listener forwards to that lane's upstream over connections that
are kept, streams both ways, lets `Upgrade` through, and gives the upstream one second if the lane says so."""

import os
import shutil


def write(name, binary, folder, lanes):
    """Writes the configuration; the command to start the proxy with, and its environment."""
    return {"countersign": _countersign, "nginx": _nginx, "haproxy": _haproxy}[name](binary, folder, lanes)


def _seconds(lane):
    return 1 if lane.kind == "timeout" else 20


def _program(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise FileNotFoundError(f"{name} is not installed")
    return path


def _save(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def _countersign(binary, folder, lanes):
    listeners = "".join(
        f'  - {{ address: "127.0.0.1:{lane.address[1]}", upstream: lane{number} }}\n' for number,
        lane in enumerate(lanes))
    upstreams = "".join(
        f'  lane{number}: {{ url: "http://127.0.0.1:{lane.upstream.port}/", timeouts: {{ response: {_seconds(lane)}s }} }}\n'
        for number, lane in enumerate(lanes))
    level = os.environ.get("CONFORMANCE_LOG_LEVEL", "warning")
    path = _save(folder, "countersign.yaml", (
        f"listeners:\n{listeners}admin:\n  address: unix:{folder}/admin.sock\nupstreams:\n{upstreams}"
        f"workers: 1\nlog: {{ level: {level}, format: text }}\n"))
    for own in ("state", "run"):
        os.mkdir(os.path.join(folder, own), 0o700)
    environment = {"PATH": os.environ.get("PATH", ""), "STATE_DIRECTORY": f"{folder}/state",
        "RUNTIME_DIRECTORY": f"{folder}/run"}
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return [os.path.abspath(binary), "serve", "--config", path], environment


def _nginx(_, folder, lanes):
    upstreams = "".join(
        f"upstream lane{number} {{ server 127.0.0.1:{lane.upstream.port} max_fails=0; keepalive 8; }}\n" for number,
        lane in enumerate(lanes))
    servers = "".join(f"""
        server {{
            listen 127.0.0.1:{lane.address[1]};
            server_name localhost;
            location / {{
                proxy_pass http://lane{number};
                proxy_read_timeout {_seconds(lane)}s;
            }}
        }}""" for number, lane in enumerate(lanes))
    user = "user root;" if os.getuid() == 0 else ""
    path = _save(folder, "nginx.conf", f"""
        {user}
        daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log error;
        events {{ worker_connections 1024; }}
        http {{
            access_log off; server_tokens off; underscores_in_headers on;
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
            uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
            client_header_timeout 5s; client_max_body_size 0;
            proxy_http_version 1.1; proxy_request_buffering off; proxy_buffering off; proxy_connect_timeout 2s;
            map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
            {upstreams}{servers}
        }}""")
    return [_program("nginx"), "-p", folder, "-c", path, "-e", f"{folder}/error.log"], None


def _haproxy(_, folder, lanes):
    parts = "".join(f"""
listen lane{number}
    bind 127.0.0.1:{lane.address[1]}
    timeout server {_seconds(lane)}s
    server upstream 127.0.0.1:{lane.upstream.port}
""" for number, lane in enumerate(lanes))
    path = _save(folder, "haproxy.cfg", f"""
global
    nbthread 1
    maxconn 1000
defaults
    mode http
    http-reuse always
    retries 0
    timeout connect 2s
    timeout client 20s
    timeout http-request 5s
    timeout http-keep-alive 20s
    timeout tunnel 20s
{parts}""")
    return [_program("haproxy"), "-db", "-f", path], None
