# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The eight ways in which upstreams are protected: what each demands, what it is told to accept, and what it was sent."""

import base64
import hashlib
import hmac
import html
import json
import time
import urllib.parse

from server import Response, answer

TOKEN_LIFETIME = 60
NONCE_LIFETIME = 120


class Protection:
    """`accepted` are the values that log in now; `refusals` when each other value arrived, as far as the server can tell."""

    name = user = field = None
    # Whether a value that the server refuses must not be sent again.
    latches = True
    # Whether the server has sessions that it can forget.
    has_sessions = False
    # The name of the user, as fields of the credential.
    others = {}

    def __init__(self):
        self.number = 0
        self.accepted = {self.value()}
        self.refusals = {}
        # (value, its refusals) until it was accepted: after that it may be wrong anew.
        self.earlier = []
        self.logins = 0
        self.sessions = {}
        self.origin = ""

    def value(self):
        return f"{self.name}-value-{self.number:04d}-long"

    def next_value(self):
        self.number += 1
        return self.value()

    def accept(self, *values):
        """From now on these are right, and no others."""
        self.earlier += [(value, self.refusals.pop(value, [])) for value in values]
        self.accepted = set(values)

    def arrivals(self, value):
        """When it arrived and was wrong: a list for each time that it became so."""
        return [moments for known, moments in self.earlier if known == value] + [self.refusals.get(value, [])]

    def judge(self, value):
        if value in self.accepted:
            return True
        self.refusals.setdefault(value, []).append(time.time())
        return False

    def establish(self):
        self.logins += 1
        identifier = f"{self.name}-{self.logins}-{hashlib.sha256(str(time.time_ns()).encode()).hexdigest()[:20]}"
        self.sessions[identifier] = time.time()
        return identifier

    def drop(self):
        self.sessions.clear()

    def admit(self, request):
        """The user and None, or None and what is answered instead."""
        raise NotImplementedError


class Plain(Protection):
    name, user, latches = "plain", "nobody", False

    def challenge(self):
        return ""

    def admit(self, request):
        return self.user, None


class Basic(Protection):
    name, user, field = "basic", "ann", "password"
    others = {"username": "ann"}

    def challenge(self):
        return "scheme: basic, prove-at: /whoami"

    def admit(self, request):
        given = request.fields.get("authorization", "")
        if given.startswith("Basic "):
            user, _, value = base64.b64decode(given[6:]).decode().partition(":")
            if user == self.user and self.judge(value):
                return user, None
        return None, answer(401, {"error": "unknown"}, ("WWW-Authenticate", 'Basic realm="soak"'))


class Digest(Protection):
    name, user, field = "digest", "bob", "password"
    others = {"username": "bob"}
    has_sessions = True

    def __init__(self):
        super().__init__()
        self.uses = set()
        self.used_nonces = set()
        # When an answer came whose count of the nonce was used before.
        self.repeated = []
        # What the file had in place of a value.
        self.wrong = []

    def challenge(self):
        return "scheme: digest, prove-at: /whoami"

    def known(self):
        """Those that an answer may have been made of: it does not tell."""
        values = [f"{self.name}-value-{number:04d}-long" for number in range(self.number, max(-1, self.number - 3), -1)]
        return values + self.wrong[-2:]

    def refuse(self, stale=False):
        nonce = f"{time.time_ns():x}"
        self.sessions[nonce] = time.time()
        text = f'Digest realm="soak", qop="auth", algorithm=SHA-256, nonce="{nonce}"' + (", stale=true" if stale else "")
        return None, answer(401, {"error": "unknown"}, ("WWW-Authenticate", text))

    def admit(self, request):
        given = request.fields.get("authorization", "")
        if not given.startswith("Digest "):
            return self.refuse()
        parts = dict(part.strip().split("=", 1) for part in given[7:].split(","))
        parts = {key: value.strip('"') for key, value in parts.items()}
        if parts["uri"] != request.target:
            raise ValueError(f"digest: the address {parts['uri']} is signed for {request.target}")
        value = next((value for value in self.known() if parts["response"] == self.response(parts, request, value)), None)
        if value is None:
            raise ValueError("digest: an answer of no value that ever was")
        if not self.judge(value):
            return self.refuse()
        use = (parts["nonce"], parts["nc"])
        began = self.sessions.get(parts["nonce"])
        if began is None or time.time() - began > NONCE_LIFETIME:
            self.uses = {use for use in self.uses if use[0] in self.sessions}
            return self.refuse(stale=True)
        if use in self.uses:
            # To a strict server it is an answer that somebody has overheard (RFC 7616 section 5.5).
            self.repeated.append(time.time())
            return self.refuse(stale=True)
        if use[0] not in self.used_nonces:
            self.used_nonces.add(use[0])
            self.logins += 1
        self.uses.add(use)
        return self.user, None

    def response(self, parts, request, value):
        def hashed(text):
            return hashlib.sha256(text.encode()).hexdigest()
        first = hashed(f"{self.user}:soak:{value}")
        second = hashed(f"{request.method}:{parts['uri']}")
        return hashed(f"{first}:{parts['nonce']}:{parts['nc']}:{parts['cnonce']}:{parts['qop']}:{second}")


class Form(Protection):
    name, user, field = "form", "carol", "password"
    others = {"username": "carol"}
    has_sessions = True

    def challenge(self):
        return "gateway: form, prove-at: /whoami"

    def page(self):
        return Response(200, (
            '<html><body><form method="post" action="/login"><input type="hidden" name="csrf" value="abc">'
            '<input name="username"><input type="password" name="password"><input type="submit"></form></body></html>'
        ).encode(), [("Cache-Control", "no-store")], "text/html; charset=utf-8")

    def admit(self, request):
        if request.path == "/login":
            if request.method != "POST":
                return None, self.page()
            form = dict(urllib.parse.parse_qsl(html.unescape(request.body.decode())))
            if form.get("csrf") == "abc" and form.get("username") == self.user and self.judge(form.get("password")):
                cookie = f"sid={self.establish()}; Path=/; HttpOnly"
                return None, Response(303, b"", [("Location", "/whoami"), ("Set-Cookie", cookie)])
            return None, self.page()
        if request.cookie("sid") in self.sessions:
            return self.user, None
        return None, Response(302, b"", [("Location", "/login")])


class Bearer(Protection):
    name, user, field = "bearer", "client-d", "client-secret"
    others = {"client-id": "client-d"}
    has_sessions = True

    def challenge(self):
        return f"scheme: bearer, token: {{ grant: client-credentials, url: '{self.origin}/token' }}"

    def admit(self, request):
        given = request.fields.get("authorization", "")
        if request.path == "/token":
            user, _, value = base64.b64decode(given.removeprefix("Basic ")).decode().partition(":")
            if user == self.user and self.judge(urllib.parse.unquote(value)):
                token = self.establish()
                return None, answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": TOKEN_LIFETIME})
            return None, answer(401, {"error": "invalid_client"}, ("WWW-Authenticate", 'Basic realm="token"'))
        began = self.sessions.get(given.removeprefix("Bearer "))
        if began is not None and time.time() - began <= TOKEN_LIFETIME:
            return self.user, None
        return None, answer(401, {"error": "token"}, ("WWW-Authenticate", 'Bearer realm="soak"'))


class Inject(Protection):
    name, user, field, latches = "inject", "tenant-e", "key", False

    def challenge(self):
        return "inject: { X-Api-Key: '{key}' }"

    def admit(self, request):
        if self.judge(request.fields.get("x-api-key")):
            return self.user, None
        return None, answer(401, {"error": "key"})


class Signature(Protection):
    name, user, field, latches = "signed", "partner-f", "secret", False

    def challenge(self):
        return ("sign: { hmac: sha256, over: \"{method}\\n{target}\\n{timestamp}\\n{body-sha256}\", field: X-Signature, "
                "fields: { X-Timestamp: '{timestamp}' } }")

    def admit(self, request):
        stamp = request.fields.get("x-timestamp", "0")
        body = hashlib.sha256(request.body).hexdigest()
        text = f"{request.method}\n{request.target}\n{stamp}\n{body}".encode()
        for value in self.accepted:
            right = hmac.new(value.encode(), text, "sha256").hexdigest()
            if hmac.compare_digest(right, request.fields.get("x-signature", "")) and abs(time.time() - int(stamp)) < 60:
                return self.user, None
        self.refusals.setdefault("signature", []).append(time.time())
        return None, answer(403, {"error": "signature"})


class Checks(Protection):
    name, user, field = "checks", "pin-g", "pin"
    has_sessions = True

    def challenge(self):
        return "security-check: PinCheck, answer: { pin: '{pin}' }, answer-url: /answer"

    def admit(self, request):
        demand = answer(401, {"challenges": {"PinCheck": {"remainingAttempts": 5}}})
        if request.path == "/answer":
            given = json.loads(request.body)["challengeResponse"]["PinCheck"]
            if self.judge(given["pin"]):
                return None, answer(
                    200, {"successes": {"PinCheck": {}}}, ("Set-Cookie", f"checks={self.establish()}; Path=/; HttpOnly"))
            return None, demand
        return (self.user, None) if request.cookie("checks") in self.sessions else (None, demand)


KINDS = [Plain, Basic, Digest, Form, Bearer, Inject, Signature, Checks]
