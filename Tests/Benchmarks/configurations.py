# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The configurations of the upstreams, of nginx, and of the daemon; those of the others are in `others`."""

import json
import os

TOKEN = "bench-" + "x" * 58
AUTHORIZATION = f"Bearer {TOKEN}"
# What a fixed field holds, and the key that signs.
SECRET = "bench-secret"
# What a login by a page sets: a session as long as the token, and the server that has it.
COOKIES = (f"SESSION={TOKEN}", "ROUTE=.node1")
# What a request without a session is asked for, one for each kind of session.
CHALLENGES = ("Bearer", 'Basic realm="bench"', 'Digest realm="bench", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c0", qop="auth", algorithm=MD5')
# The 65 bytes of an answer.
ANSWER = "{\"account\":\"DE02 1203 0000 0000 2020 51\",\"balance\":\"1234567.89\"}\n"
# The name that the upstreams' certificate is for, besides their address.
TLS_NAME = "localhost"
# More than any scenario has.
MOST_CONNECTIONS = 12000


def nginx(folder, servers, connections=4096, workers=1):
    """An nginx that writes nothing outside of its folder. No connection ends during a run."""
    user = "user root;" if os.getuid() == 0 else ""
    return f"""
        {user}
        daemon off; worker_processes {workers}; pid {folder}/nginx.pid; error_log {folder}/error.log error;
        worker_rlimit_nofile 20000;
        events {{ worker_connections {connections}; multi_accept on; }}
        http {{
            access_log off; server_tokens off; sendfile on; tcp_nodelay on;
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
            uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
            keepalive_requests 1000000000; keepalive_timeout 1h;
            {servers}
        }}"""


def upstream(folder, ports, certificate, key):
    """Answers to whoever has the token, by HTTP/1.1, by TLS, and by HTTP/2; hands the token out at /token. Other servers of its answer to
    whoever has the cookie of /login, or any answer to Digest or Basic: what that is worth is not the measure."""
    token = json.dumps({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 86400})
    guard = f"""
        default_type application/json;
        if ($http_authorization != "{AUTHORIZATION}") {{ add_header WWW-Authenticate Bearer always; return 401; }}"""
    tls = f"ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_session_cache shared:bench:1m;"
    locations = f"""
        location / {{ {guard} return 200 '{ANSWER}'; }}
        location /files/ {{ {guard} root {folder}; open_file_cache max=10 inactive=1h; open_file_cache_valid 1h; }}
        # A body is read to its end, into memory, before the answer: that of a server of nginx's own that never sees it.
        location /upload {{
            {guard}
            client_max_body_size 0; client_body_buffer_size 2m; proxy_pass_request_body off;
            proxy_http_version 1.1; proxy_set_header Content-Length ""; proxy_set_header Connection "";
            proxy_pass http://answer;
        }}
        location = /token {{ default_type application/json; return 200 '{token}'; }}"""
    return nginx(folder, f"""
        upstream answer {{ server unix:{folder}/answer; keepalive 128; keepalive_requests 1000000000; }}
        server {{ listen unix:{folder}/answer; default_type application/json; return 200 '{ANSWER}'; }}
        server {{ listen 127.0.0.1:{ports["plain"]} backlog=8192; {locations} }}
        server {{ listen 127.0.0.1:{ports["tls"]} ssl backlog=4096; {tls} {locations} }}
        server {{
            listen 127.0.0.1:{ports["cookies"]} backlog=8192; default_type application/json;
            location = /login {{
                add_header Set-Cookie "{COOKIES[0]}; Path=/"; add_header Set-Cookie "{COOKIES[1]}; Path=/"; return 200 in;
            }}
            location / {{ if ($cookie_session != "{TOKEN}") {{ return 401; }} return 200 '{ANSWER}'; }}
        }}
        {challenging(ports["digest"], CHALLENGES[2])}
        {challenging(ports["realms"], CHALLENGES[1])}
        server {{
            listen 127.0.0.1:{ports["fixed"]} backlog=8192; default_type application/json;
            location / {{ if ($http_authorization != "Bearer {SECRET}") {{ return 401; }} return 200 '{ANSWER}'; }}
        }}
        server {{
            listen 127.0.0.1:{ports["signed"]} backlog=8192; default_type application/json;
            location / {{ if ($http_authorization !~ "^AWS4-HMAC-SHA256 ") {{ return 401; }} return 200 '{ANSWER}'; }}
        }}
        server {{
            listen 127.0.0.1:{ports["h2"]} ssl http2 backlog=4096; {tls} http2_max_concurrent_streams 1024;
            # As long as the server's own default, but enough for all of a body.
            http2_body_preread_size 1m;
            {locations}
        }}""", connections=MOST_CONNECTIONS)


def challenging(port, challenge):
    """A server that answers to whoever answers that challenge."""
    return f"""
        server {{
            listen 127.0.0.1:{port} backlog=8192; default_type application/json;
            location / {{
                if ($http_authorization = "") {{ add_header WWW-Authenticate '{challenge}' always; return 401; }}
                return 200 '{ANSWER}';
            }}
        }}"""


def static_proxy(folder, ports, upstreams, authority, workers=1, kept=1024):
    """nginx with the token in its configuration. It hands bodies on as they come, both ways, and writes no files; but `spooled` takes a
    request's body whole before it sends it, as nginx does where nobody says otherwise. `kept`: idle connections of each worker.
    """
    servers = ""
    for kind, port in ports.items():
        scheme = "https" if kind == "tls" else "http"
        servers += f"""
            upstream {kind} {{ server 127.0.0.1:{upstreams[kind]}; keepalive {kept}; keepalive_requests 1000000000; }}
            server {{
                listen 127.0.0.1:{port} backlog=8192;
                location / {{
                    proxy_pass {scheme}://{kind};
                    proxy_http_version 1.1;
                    proxy_set_header Connection "";
                    proxy_set_header Authorization "{AUTHORIZATION}";
                    proxy_request_buffering {'on' if kind == 'spooled' else 'off'}; proxy_max_temp_file_size 0; client_max_body_size 0;
                    {f"proxy_ssl_verify on; proxy_ssl_trusted_certificate {authority};" if authority else ""}
                    proxy_ssl_name {TLS_NAME}; proxy_ssl_server_name on;
                }}
            }}"""
    return nginx(folder, servers, MOST_CONNECTIONS, workers)


def countersign(folder, ports, upstreams, authority, token_port=None, workers=1):
    """The daemon as a confidential client: it meets the challenge, fetches the token, and keeps the session.

    `token_port`: a server of tokens elsewhere than at the upstream. The kind `cookies` is a session of cookies, `digest` one of
    Digest, `realms` one of two that the server tells apart by their realms, `fixed` one field, and `signed` the signatures of AWS.
    """
    listeners = "".join(f'  - {{ address: "127.0.0.1:{port}", upstream: {kind} }}\n' for kind, port in ports.items())
    entries = challenges = ""
    for kind in ports:
        is_plain = kind in ("plain", "spooled", "bodies", "cookies", "digest", "realms", "fixed", "signed")
        version = "2" if kind == "h2" else "1.1"
        tls = "" if is_plain else f"    tls: {{ ca: {authority} }}\n"
        url = f"http{'' if is_plain else 's'}://127.0.0.1:{upstreams[kind]}/"
        token = f"http://127.0.0.1:{token_port}/token" if token_port else f"{url}token"
        entries += f"  {kind}:\n    url: {url}\n    http: {version}\n{tls}"
        if kind == "cookies":
            challenges += (
                "  - name: cookies\n    upstream: cookies\n    gateway: none\n    credential: bench\n"
                "    detect: { status: 401 }\n    success: { cookie: SESSION }\n"
                "    login: { url: /login, parameters: { user: \"{username}\", pass: \"{password}\" } }\n")
            continue
        if kind == "digest":
            challenges += "  - { name: digest, upstream: digest, scheme: digest, credential: bench }\n"
            continue
        if kind == "fixed":
            challenges += '  - { name: fixed, upstream: fixed, inject: { Authorization: "Bearer {password}" }, credential: bench }\n'
            continue
        if kind == "signed":
            challenges += "  - { name: signed, upstream: signed, sign: { aws: { region: r, service: s3 } }, credential: bench }\n"
            continue
        if kind == "realms":
            for realm in ("bench", "other"):
                challenges += f"  - {{ name: {realm}, upstream: realms, scheme: basic, realm: {realm}, credential: bench }}\n"
            continue
        challenges += (
            f"  - name: {kind}\n    upstream: {kind}\n    scheme: bearer\n    credential: bench\n"
            f"    token: {{ grant: mobilefirst, url: \"{token}\" }}\n")
    return f"""
listeners:
{listeners}admin:
  address: unix:{folder}/run/admin.sock
upstreams:
{entries}challenges:
{challenges}credentials:
  sources: [env]
limits: {{ callers: {MOST_CONNECTIONS}, exchanges: {MOST_CONNECTIONS}, waiters: {MOST_CONNECTIONS} }}
workers: {workers}
log: {{ level: warning, format: text }}
"""


def countersign_environment(folder):
    """No setting of the caller's own reaches it."""
    return {
        "PATH": os.environ.get("PATH", ""), "STATE_DIRECTORY": f"{folder}/state", "RUNTIME_DIRECTORY": f"{folder}/run",
        "COUNTERSIGN_BENCH__CLIENT_ID": "bench", "COUNTERSIGN_BENCH__CLIENT_SECRET": "bench-secret",
        "COUNTERSIGN_BENCH__USERNAME": "bench", "COUNTERSIGN_BENCH__PASSWORD": SECRET,
        "COUNTERSIGN_BENCH__ACCESS_KEY_ID": "AKIDEXAMPLE", "COUNTERSIGN_BENCH__SECRET_ACCESS_KEY": SECRET,
    }
