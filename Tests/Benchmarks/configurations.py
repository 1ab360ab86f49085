# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The configurations of the upstream and of those that stand before it."""

import json
import os

TOKEN = "bench-" + "x" * 58
# The 65 bytes of an answer.
ANSWER = "{\"account\":\"DE02 1203 0000 0000 2020 51\",\"balance\":\"1234567.89\"}\n"


def nginx(folder, server, upstreams=""):
    """An nginx of one worker that writes nothing outside of its folder. No connection ends during a run."""
    user = "user root;" if os.getuid() == 0 else ""
    return f"""
        {user}
        daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log error;
        events {{ worker_connections 4096; }}
        http {{
            access_log off; server_tokens off;
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
            uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
            keepalive_requests 1000000000; keepalive_timeout 1h;
            {upstreams}
            {server}
        }}"""


def upstream(folder, port):
    """Answers from memory to whoever has the token, and hands it out at /token."""
    token = json.dumps({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 86400})
    return nginx(folder, f"""
        server {{
            listen 127.0.0.1:{port} backlog=4096;
            location / {{
                default_type application/json;
                if ($http_authorization != "Bearer {TOKEN}") {{
                    add_header WWW-Authenticate Bearer always;
                    return 401;
                }}
                return 200 '{ANSWER}';
            }}
            location = /token {{ default_type application/json; return 200 '{token}'; }}
        }}""")


def static_proxy(folder, port, upstream_port, is_streaming=False):
    """nginx with the token in its configuration. `is_streaming`: it hands bodies on as they come, both ways."""
    streaming = """
                proxy_request_buffering off; proxy_max_temp_file_size 0; client_max_body_size 0;
    """ if is_streaming else ""
    return nginx(folder, f"""
        server {{
            listen 127.0.0.1:{port} backlog=4096;
            location / {{
                proxy_pass http://upstream;
                proxy_http_version 1.1;
                proxy_set_header Connection "";
                proxy_set_header Authorization "Bearer {TOKEN}";
                {streaming}
            }}
        }}""", f"upstream upstream {{ server 127.0.0.1:{upstream_port}; keepalive 128; keepalive_requests 1000000000; }}")


def countersign(port, upstream_port):
    """The daemon as a confidential client: it meets the challenge, fetches the token, and keeps the session."""
    return f"""
listeners:
  - {{ address: "127.0.0.1:{port}", upstream: bench }}
upstreams:
  bench:
    url: http://127.0.0.1:{upstream_port}/
challenges:
  - name: bench
    upstream: bench
    scheme: bearer
    credential: bench
    token: {{ grant: mobilefirst, url: "http://127.0.0.1:{upstream_port}/token" }}
credentials:
  sources: [env]
workers: 1
log: {{ level: warning, format: text }}
"""


def countersign_environment(folder):
    """No setting of the caller's own reaches it."""
    return {
        "PATH": os.environ.get("PATH", ""), "STATE_DIRECTORY": f"{folder}/state", "RUNTIME_DIRECTORY": f"{folder}/run",
        "COUNTERSIGN_BENCH__CLIENT_ID": "bench", "COUNTERSIGN_BENCH__CLIENT_SECRET": "bench-secret",
    }
