# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Countersign's own rules for local access and local replies."""

from case import AFTER, Case, get, post, request
from judge import Want, arrives, both, either, gets, nothing_upstream, refused, that


def _own(name, about, *lines, status=403, method=b"GET"):
    return Case(f"local/{name}", "DESIGN 1.7", about, (request(method + b" /x", *lines),),
        both(gets(status), nothing_upstream()), contract=True, level="safety")


def _open(name, about, *lines):
    return Case(f"local/{name}", "DESIGN 1.7", about, (get(b"/x", *lines),), arrives(Want()), contract=True,
        level="safety")


def _code(name, about, sent, status, code, **more):
    return Case(f"local/{name}", "DESIGN 1.7", about, (sent,),
        both(gets(status), that("must", f"the code is not {code.decode()}",
        lambda seen: b'"code":"%s"' % code in seen.finals()[0].body.data.replace(b" ", b""))),
                contract=True, level="safety", **more)


def cases():
    origin = b"Origin: http://"
    return [
        _own("cross-site", "a request that another site made a browser send is refused", b"Sec-Fetch-Site: cross-site"),
        _own("cross-site-case", "the word compares in any case, or is refused as a stranger",
            b"Sec-Fetch-Site: Cross-Site"),
        _own("cross-site-post", "a cross-site POST is refused", b"Sec-Fetch-Site: cross-site", b"Content-Length: 0",
            method=b"POST"),
        _own("cross-site-options", "a cross-site preflight is refused", b"Sec-Fetch-Site: cross-site",
            b"Access-Control-Request-Method: POST", method=b"OPTIONS"),
        _own("cross-site-twice", "one of two words that is cross-site is refused", b"Sec-Fetch-Site: none",
            b"Sec-Fetch-Site: cross-site"),
        _own("origin-foreign", "an Origin of another host is refused", origin + b"evil.example"),
        _own("origin-foreign-https", "an Origin of another host is refused, whatever its scheme",
            b"Origin: https://evil.example"),
        _own("origin-null", "an Origin of null is no local one", b"Origin: null"),
        _own("origin-beginning", "an Origin whose host begins as ours is refused", origin + b"localhost.evil.example"),
        _own("origin-end", "an Origin whose host ends as ours is refused", origin + b"evillocalhost"),
        _own("origin-user", "an Origin with user information is refused", origin + b"localhost@evil.example"),
        _own("origin-upgrade", "a foreign WebSocket handshake is refused", origin + b"evil.example",
            b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13",
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
        _own("origin-twice", "one of two Origins that is foreign is refused", origin + b"localhost",
            origin + b"evil.example"),
        _own("origin-list", "a list of Origins with a foreign one is refused",
            origin + b"localhost http://evil.example"),
        _own("origin-nominated", "Connection does not hide Origin", b"Connection: origin", origin + b"evil.example"),
        _own("cross-site-nominated", "Connection does not hide Sec-Fetch-Site", b"Connection: sec-fetch-site",
            b"Sec-Fetch-Site: cross-site"),
        _open("same-origin", "a request of our own pages passes", b"Sec-Fetch-Site: same-origin"),
        _open("fetch-none", "a request that the user made passes", b"Sec-Fetch-Site: none",
            b"Sec-Fetch-Mode: navigate"),
        _open("fetch-other", "other Sec-Fetch fields pass", b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document"),
        Case("local/origin-own", "DESIGN 1.7", "our own Origin passes", (lambda lane: request(
            b"GET /x", b"Origin: http://localhost:%d" % lane.address[1],
            host=b"Host: localhost:%d\r\n" % lane.address[1]),), arrives(Want()), contract=True, level="safety"),
        Case("local/no-cors", "DESIGN 1.7", "no answer of ours lets another site read it",
            (get(b"/x", origin + b"evil.example"),),
            both(gets(403), that("must", "a CORS field in a local reply",
            lambda seen: not any(name.startswith(b"access-control") for name in seen.finals()[0].fields.names()))),
            contract=True, level="safety"),
        _code("code-400", "a framing error is bad-request", post(b"", b"Content-Length: x"), 400, b"bad-request"),
        _code("code-405", "TRACE is 405 with a code", request(b"TRACE /x"), 405, b"method-not-allowed"),
        _code("code-417", "an expectation that nobody knows is bad-request", get(b"/x", b"Expect: wonders"), 417,
            b"bad-request"),
        _code("code-414", "a long target is bad-request", get(b"/" + b"x" * 102_400), 414, b"bad-request"),
        _code("code-431", "a long field is bad-request", get(b"/x", b"X-A: " + b"v" * 102_400), 431, b"bad-request"),
        _code("code-505", "another version is bad-request", b"GET /x HTTP/2.0\r\nHost: localhost\r\n\r\n", 505,
            b"bad-request"),
        _code("code-421", "a foreign host is host-not-allowed", request(b"GET /x", host=b"Host: evil.example\r\n"), 421,
            b"host-not-allowed"),
        _code("code-403", "a foreign page is caller-not-allowed", get(b"/x", b"Sec-Fetch-Site: cross-site"), 403,
            b"caller-not-allowed"),
        _code("code-502", "an upstream that is not there is upstream-unreachable", get(), 502, b"upstream-unreachable",
            lane="dead"),
        Case("local/no-address", "DESIGN 1.7", "a local reply tells no address of the upstream", (get(),),
            both(gets(502), that("must", "the upstream's address is told",
            lambda seen: b"%d" % seen.upstream_port not in seen.callers[0].received)), contract=True, lane="dead",
            level="safety"),
        Case("local/no-echo", "DESIGN 1.7", "a local reply does not repeat what was sent",
            (get(b"/<script>alert(1)</script>?secret=hunter2", b"Expect: <script>hunter2"),),
            that("must", "the request is repeated", lambda seen: b"hunter2" not in seen.callers[0].received),
            contract=True, level="safety"),
        Case("local/403-goes-on", "9110 15.5.4", "after a 403 the connection goes on in order, or ends",
            (get(b"/x", b"Sec-Fetch-Site: cross-site") + AFTER,),
            both(gets(403), either(gets(200, number=1, body=b"GET /after"),
            that("must", "neither answered nor ended", lambda seen: seen.callers[0].ended != "open"))), contract=True,
            level="safety", finals={0: 2}),
        Case("local/403-post", "9112 9.3", "the body of a request that is 403 is no request",
            (post(get(b"/smuggled"), b"Content-Length: %d" % len(get(b"/smuggled")), b"Sec-Fetch-Site: cross-site"),),
            both(gets(403), that("exploitable", "a body was answered", lambda seen: len(seen.finals()) == 1)),
            contract=True, level="safety"),
        Case("local/1.0", "DESIGN 1.7", "a local reply to HTTP/1.0 is complete, and ends the connection",
            (b"TRACE /x HTTP/1.0\r\nHost: localhost\r\n\r\n",), both(gets(405), refused(405)), contract=True,
            level="safety"),
        Case("local/head", "9110 9.3.2", "a local reply to HEAD has no body",
            (request(b"HEAD /x", b"Sec-Fetch-Site: cross-site") + AFTER,), both(gets(403, body=b"")), contract=True,
            level="safety", methods={0: ["HEAD"]}),
    ]
