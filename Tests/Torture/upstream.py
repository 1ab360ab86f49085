# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The protected server: it records the requests that arrive, and how often a password was sent."""

import base64
import collections
import hashlib
import http.server
import struct
import threading
import urllib.parse

RIGHT = ("ann", "demo")
# The second message of NTLM ([MS-NLMP] 2.2.1.2), without names: flags for Unicode, NTLM and a dummy signature, and a nonce.
CHALLENGE = base64.b64encode(b"NTLMSSP\0" + struct.pack("<IHHII8s8sHHI", 2, 0, 0, 48, 0x8201, b"nonce123", b"", 0, 0, 48)).decode()


class Upstream:
    """A server whose counters begin anew with each run."""

    def __init__(self):
        self.lock, self.release = threading.Condition(), threading.Event()
        self.reset()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads, self.server.upstream = True, self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def reset(self):
        with self.lock:
            self.arrived, self.served = collections.Counter(), collections.Counter()
            self.digests, self.codes, self.users = {}, collections.Counter(), collections.defaultdict(set)
            self.right = self.wrong = self.reused = 0
            self.sessions, self.refresh = set(), "refresh-0"
            self.release.clear()

    def wait_for(self, path, seconds=10):
        """Until that request has arrived."""
        with self.lock:
            return self.lock.wait_for(lambda: self.arrived[path] > 0, seconds)

    def count(self, password_is_right):
        with self.lock:
            self.right += password_is_right
            self.wrong += not password_is_right


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    is_trusted = False
    # An answer leaves in one piece, and at once.
    wbufsize, disable_nagle_algorithm = -1, True

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # The fault was on that connection.

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            pieces = []
            while size := int(self.rfile.readline() or b"0", 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        size = int(self.headers.get("Content-Length", 0))
        read = self.rfile.read(size)
        if len(read) < size:
            self.close_connection = True
            raise ConnectionResetError
        return read

    def answer(self, status, text="ok\n", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def serve(self, body):
        with self.server.upstream.lock:
            self.server.upstream.served[self.path] += 1
            self.server.upstream.digests[self.path] = hashlib.sha256(body).hexdigest()
        self.answer(200, f"{self.path} {len(body)}\n")

    def do_GET(self):
        upstream, body = self.server.upstream, self.body()
        with upstream.lock:
            upstream.arrived[self.path] += 1
            upstream.lock.notify_all()
        area = self.path.split("/")[1]
        getattr(self, f"do_{area}", lambda _: self.answer(404))(body)

    do_POST = do_PUT = do_GET

    def do_open(self, body):
        self.serve(body)

    do_closed = do_open

    def do_slow(self, body):
        self.server.upstream.release.wait(15)
        self.serve(body)

    def do_basic(self, body):
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        is_right = base64.b64decode(value).decode() == ":".join(RIGHT) if scheme == "Basic" else None
        if is_right is not None:
            self.server.upstream.count(is_right)
        if is_right:
            self.serve(body)
        else:
            self.answer(401, "who are you?\n", WWW_Authenticate='Basic realm="torture"')

    do_proved = do_basic

    def do_mine(self, body):
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        if scheme != "Basic":
            return self.answer(401, "who are you?\n", WWW_Authenticate='Basic realm="torture"')
        with self.server.upstream.lock:
            self.server.upstream.users[self.path].add(base64.b64decode(value).decode().partition(":")[0])
        return self.serve(body)

    def do_form(self, body):
        upstream = self.server.upstream
        if self.path == "/form/j_security_check":
            fields = dict(urllib.parse.parse_qsl(body.decode()))
            is_right = (fields.get("j_username"), fields.get("j_password")) == RIGHT
            upstream.count(is_right)
            if "otp" in fields:
                upstream.codes[fields["otp"]] += 1
            if not is_right:
                return self.answer(200, "<p>wrong</p>\n", Content_Type="text/html")
            with upstream.lock:
                session = f"sid{upstream.right}"
                upstream.sessions.add(session)
            return self.answer(302, "", Location="/form/home", Set_Cookie=f"JSESSIONID={session}; Path=/; HttpOnly")
        if any(f"JSESSIONID={session}" in self.headers.get("Cookie", "") for session in list(upstream.sessions)):
            return self.serve(body)
        page = '<form method="post" action="/form/j_security_check"><input name="j_username"><input type="password" name="j_password"></form>'
        return self.answer(200, page, Content_Type="text/html")

    def do_ntlm(self, body):
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        message = base64.b64decode(value) if scheme == "NTLM" else b""
        kind = message[8] if len(message) > 8 else 0
        # It is the connection that is authenticated.
        self.is_trusted = self.is_trusted or kind == 3
        if self.is_trusted and self.command == "GET":
            self.answer(200, "looked at\n")
        elif self.is_trusted:
            self.serve(body)
        elif kind == 1 and self.path == "/ntlm/anybody":
            self.answer(200, "nobody is asked here\n")
        else:
            self.answer(401, "who are you?\n", WWW_Authenticate=f"NTLM {CHALLENGE}" if kind == 1 else "NTLM")

    def do_token(self, body):
        upstream, fields = self.server.upstream, dict(urllib.parse.parse_qsl(body.decode()))
        with upstream.lock:
            if fields.get("refresh_token") != upstream.refresh:
                upstream.reused += 1
                return self.answer(400, '{"error":"invalid_grant"}', Content_Type="application/json")
            number = int(upstream.refresh.split("-")[1]) + 1
            upstream.refresh = f"refresh-{number}"
            upstream.sessions.add(f"access-{number}")
        text = f'{{"access_token":"access-{number}","token_type":"Bearer","expires_in":3600,"refresh_token":"{upstream.refresh}"}}'
        return self.answer(200, text, Content_Type="application/json")

    def do_api(self, body):
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token in self.server.upstream.sessions:
            self.serve(body)
        else:
            self.answer(401, "", WWW_Authenticate='Bearer realm="api"')
