# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""
The common parts of the fakes of login servers in this folder: HTTP/1.1 on 127.0.0.1, sessions that can be ended, an application that
needs a login, a log of all requests on standard output, and commands for the test.

Prints `ready`, then `request METHOD TARGET STATUS` before each request is answered, `arrived METHOD TARGET USER LENGTH SHA-256` for each
request that reached the application, and `login NAME OUTCOME` for each password that was checked.

Commands: `/-fake/expire` (the server forgets its sessions), `/-fake/expire?at=N` (with the Nth POST to the application from now on),
`/-fake/restart?at=N` (the same, and all connections end after their next answer, as in a graceful restart), `/-fake/maintenance` (every
page is 503, until the command is repeated), `/-fake/compress?coding=NAME` (every answer is in gzip or deflate, whatever the request
accepts; `bomb` is gzip with 8 MiB of blanks after each body), `/-fake/validators` (every page, that of the login too, has an ETag and
parts, and honors preconditions, as a server of files does).
"""

import gzip
import hashlib
import http.server
import json
import re
import secrets
import ssl
import sys
import threading
import urllib.parse
import zlib

MODIFIED = "Wed, 01 Jan 2025 00:00:00 GMT"

# The users that every fake knows. What the others of a fake are like is its own matter.
PASSWORDS = {"ann": "demo"}

MENTION = """<!DOCTYPE html><title>How to log in</title>
<!-- <form action="/pkmslogin.form"><form action="j_security_check"><input name="j_username"> -->
<script>if (page.includes("j_security_check") || page.includes("/pkmslogin.form")) { location = "/login?TAM_OP=login"; }</script>
<p>Post j_username to j_security_check, or username to /pkmslogin.form. HPDIA0200W means a wrong password.</p>
"""
MAINTENANCE = """<!DOCTYPE html><title>503</title><h1>Under maintenance</h1>
<p>Logging in by j_security_check or /pkmslogin.form is not possible until 6 o'clock.</p>
"""


class Request:
    """A request, read completely."""

    def __init__(self, method, target, fields, body):
        self.method, self.target, self.fields, self.body = method, target, fields, body
        self.path, _, self.query = target.partition("?")

    @property
    def cookies(self):
        """Name and value; of two with one name the first, as servers have it, and of several lines what WSGI and PHP make of them."""
        pairs = [pair.strip().partition("=") for pair in ",".join(self.fields.get_all("Cookie", [])).split(";")]
        return {name: value for name, _, value in reversed(pairs) if name}

    @property
    def form(self):
        """The fields of a form; empty if the body is not one."""
        if self.fields.get_content_type() != "application/x-www-form-urlencoded":
            return {}
        return dict(urllib.parse.parse_qsl(self.body.decode("latin-1"), keep_blank_values=True))

    def replaced_by(self, method, body, content_type):
        """The same with a method and a body that were saved before."""
        self.method, self.body = method, body
        del self.fields["Content-Type"]
        if content_type:
            self.fields["Content-Type"] = content_type


class Answer:
    def __init__(self, status, body="", *fields, content_type="text/html;charset=utf-8"):
        self.status, self.fields = status, list(fields)
        self.body = body if isinstance(body, bytes) else body.encode()
        if self.body:
            self.fields.append(("Content-Type", content_type))

    def compress(self, coding):
        """Compresses the body."""
        if coding == "deflate":
            self.body = zlib.compress(self.body)
        else:
            self.body = gzip.compress(self.body + (b" " * (8 << 20) if coding == "bomb" else b""))
        self.fields.append(("Content-Encoding", "deflate" if coding == "deflate" else "gzip"))

    def apply_conditions(self, request):
        """Evaluates preconditions and a range (RFC 9110 section 13.2.2)."""
        tag, given = f'"{hashlib.sha256(self.body).hexdigest()[:16]}"', request.fields
        self.fields += [("ETag", tag), ("Last-Modified", MODIFIED), ("Accept-Ranges", "bytes")]
        if "If-Match" in given and given["If-Match"] not in (tag, "*"):
            self.status, self.body = 412, b""
            return
        if given["If-None-Match"] == tag if "If-None-Match" in given else "If-Modified-Since" in given:
            self.status, self.body = 304, b""
            return
        span = re.fullmatch(r"bytes=([0-9]+)-([0-9]*)", given.get("Range", ""))
        if not span or request.method != "GET" or given.get("If-Range", tag) not in (tag, MODIFIED):
            return
        first, length = int(span[1]), len(self.body)
        last = min(int(span[2] or length), length - 1)
        if first >= length:
            self.status, self.body = 416, b""
            self.fields.append(("Content-Range", f"bytes */{length}"))
        else:
            self.status, self.body = 206, self.body[first:last + 1]
            self.fields.append(("Content-Range", f"bytes {first}-{last}/{length}"))

    def setting(self, name, value, *attributes):
        """The same, with a cookie."""
        self.fields.append(("Set-Cookie", "; ".join([f"{name}={value}", "Path=/", *attributes])))
        return self


def redirect(location, *fields, status=302):
    return Answer(status, "", ("Location", location), *fields)


def log(*words):
    """Prints a line, in one write: a line of several would be mixed with those of other threads."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def check(name, password):
    """Returns true if a password is right, and prints the outcome."""
    is_right = PASSWORDS.get(name, "") == password != ""
    log("login", name or "-", "ok" if is_right else "wrong")
    return is_right


class Fake:
    """One server. What differs from server to server is `respond`, which runs alone at any time."""

    name = "fake"

    def __init__(self):
        self.lock = threading.RLock()
        self.generation = 0
        self.is_closed = False
        self.coding = ""
        self.has_validators = False
        self.posts_left, self.restarts = 0, False
        self.sessions = {}
        self.origin = ""

    def respond(self, request):
        raise NotImplementedError

    def expire(self):
        """Ends every session."""
        self.sessions.clear()

    def open_session(self, **values):
        identifier = secrets.token_hex(16)
        self.sessions[identifier] = values
        return identifier

    def rename_session(self, identifier):
        """A new identifier for the same session, as servers make one at the login."""
        values = self.sessions.pop(identifier, {})
        return self.open_session(**values)

    def is_open(self, request):
        """Returns true if a path needs no login."""
        return request.path.startswith("/open/")

    def application(self, request, user):
        """Answers as the application after the login. Some of its pages only resemble a challenge."""
        log("arrived", request.method, request.target, user, len(request.body), hashlib.sha256(request.body).hexdigest())
        if request.method == "POST" and self.posts_left:
            self.posts_left -= 1
            if not self.posts_left:
                self.expire()
                self.generation += self.restarts
        last = request.path.rsplit("/", 1)[-1]
        if last == "mention":
            return Answer(200, MENTION)
        if last == "maintenance":
            return Answer(503, MAINTENANCE, ("Retry-After", "600"))
        if last == "refuse":
            return Answer(401, '{"error": "not yours: /pkmslogin.form, j_security_check"}', content_type="application/json")
        if last == "file.bin":
            return Answer(200, bytes(range(256)) * 100, content_type="application/octet-stream")
        if last == "guide.html":
            return Answer(200, "<!DOCTYPE html><title>Guide</title>" + "<p>Step by step.</p>\n" * 500)
        if last == "missing":
            return Answer(404, "<!DOCTYPE html><title>404</title>")
        value = {"principal": user, "method": request.method, "target": request.target, "cookies": "; ".join(sorted(request.cookies))}
        answer = Answer(200, json.dumps(value), content_type="application/json")
        return answer.setting("basket", "7") if last == "basket" else answer

    def door(self, request):
        options = dict(urllib.parse.parse_qsl(request.query))
        action = request.path.removeprefix("/-fake/")
        if action == "maintenance":
            self.is_closed = not self.is_closed
        elif action == "validators":
            self.has_validators = True
        elif action == "compress":
            self.coding = options["coding"]
        elif "at" in options:
            self.posts_left, self.restarts = int(options["at"]), action == "restart"
        else:
            self.expire()
        return Answer(204)

    def answer(self, request):
        with self.lock:
            if request.path.startswith("/-fake/"):
                return self.door(request)
            answer = Answer(503, MAINTENANCE) if self.is_closed else self.respond(request)
            if self.coding and answer.body:
                answer.compress(self.coding)
            if self.has_validators and answer.status == 200 and answer.body and request.method in ("GET", "HEAD"):
                answer.apply_conditions(request)
        log("request", request.method, request.target, answer.status)
        return answer

    def serve(self, port, certificate=None):
        """Serves until SIGTERM. `certificate`: the files of a certificate and its key, for TLS."""
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def setup(self):
                super().setup()
                self.generation = fake.generation

            def handle_one_request(self):
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                answer = fake.answer(Request(self.command, self.path, self.headers, self.read_body()))
                if fake.generation != self.generation:
                    self.close_connection = True
                lines = [f"HTTP/1.1 {answer.status} {self.responses.get(answer.status, ['Said'])[0]}", f"Server: {fake.name}"]
                lines += [f"{name}: {value}" for name, value in answer.fields]
                if answer.status not in (204, 304):
                    lines.append(f"Content-Length: {len(answer.body)}")
                if self.close_connection:
                    lines.append("Connection: close")
                head = "\r\n".join(lines + ["", ""]).encode("latin-1")
                self.wfile.write(head + (b"" if self.command == "HEAD" else answer.body))
                self.wfile.flush()

            def read_body(self):
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                while self.rfile.readline() not in (b"\r\n", b""):
                    pass
                return body

            def finish(self):
                try:
                    super().finish()
                except OSError:
                    pass

        class Listener(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, request, address):
                if not isinstance(sys.exc_info()[1], OSError):
                    super().handle_error(request, address)

        listener = Listener(("127.0.0.1", port), Handler)
        self.origin = f"http://127.0.0.1:{port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            listener.socket = context.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
            self.origin = f"https://localhost:{port}"
        log("ready")
        listener.serve_forever()
