# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""`Host` (RFC 9112 §3.2, RFC 9110 §7.2)."""

from case import AFTER, Case, get, request
from judge import Want, arrives, both, either, gets, nothing_upstream, refused, that

GET = b"GET /x HTTP/1.1\r\n"


def _refused(name, about, *lines, version=b"HTTP/1.1", statuses=(400,), level="MUST"):
    head = b"GET /x " + version + b"\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n"
    return Case(f"hosts/{name}", "9112 3.2", about, (head + AFTER,), refused(*statuses, close=False, exact=True),
        level=level, finals={0: 1})


def _passes(name, about, *lines):
    return Case(f"hosts/{name}", "9112 3.2", about,
        (GET + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + AFTER,),
                arrives(Want(), Want(b"/after")), finals={0: 2})


def _either(name, about, *lines, statuses=(400, 421, 403, 404)):
    return Case(f"hosts/{name}", "9112 3.2", about, (GET + b"".join(line + b"\r\n" for line in lines) + b"\r\n",),
                either(refused(*statuses, close=False), arrives(Want())), level="safety")


def _foreign(name, host):
    """Requests that a web page can send by a name of its own (DNS rebinding)."""
    return Case(f"hosts/foreign-{name}", "DESIGN 1.7", f"{host!r} is not ours",
        (request(b"GET /x", host=b"Host: " + host + b"\r\n"),),
                both(gets(421, 400), nothing_upstream()), contract=True, level="safety")


INVALID = [
    ("space", b"local host"), ("slash", b"localhost/x"), ("comma", b"localhost, localhost"),
        ("scheme", b"http://localhost"), ("port-word", b"localhost:abc"),
    ("port-minus", b"localhost:-1"), ("port-two", b"localhost:1:2"), ("bracket-open", b"[::1"),
        ("bracket-close", b"::1]"), ("bare-6", b"::1"),
    ("user", b"user@localhost"), ("question", b"localhost?x"), ("fragment", b"localhost#x"),
        ("backslash", b"localhost\\x"), ("quote", b'"localhost"'),
    ("less", b"<localhost>"), ("bracket-name", b"[localhost]"), ("bracket-tail", b"[::1]x"), ("caret", b"local^host"),
        ("bar", b"local|host"), ("tab", b"local\thost"),
    ("percent-broken", b"localhost%"), ("port-space", b"localhost: 80"), ("port-plus", b"localhost:+80"),
        ("control", b"local\x01host"), ("nul", b"localhost\x00"),
    ("utf-8", "löcalhost".encode()),
]


def cases():
    upstream_host = that("must", "Host upstream is not the upstream's authority",
        lambda seen: seen.requests and seen.requests[0].fields.one(b"host") == b"127.0.0.1:%d" % seen.upstream_port)
    found = [
        _refused("missing", "a request of HTTP/1.1 without Host is refused"),
        _refused("missing-other-fields", "other fields do not stand for Host", b"X-Forwarded-Host: localhost",
            b"Hosts: localhost"),
        _refused("twice-same", "two Host fields are refused, the same too", b"Host: localhost", b"Host: localhost"),
        _refused("twice-differing", "two Host fields are refused", b"Host: localhost", b"Host: evil.example"),
        _refused("twice-case", "two Host fields are refused in any case of letters", b"Host: localhost",
            b"hOST: localhost"),
        _refused("twice-apart", "two Host fields are refused, however far apart", b"Host: localhost",
            *(b"X-%d: y" % n for n in range(30)), b"Host: evil.example"),
        _refused("twice-empty", "an empty second Host is refused", b"Host: localhost", b"Host:"),
        _refused("twice-1.0", "two Host fields are refused in HTTP/1.0, too", b"Host: localhost", b"Host: evil.example",
            version=b"HTTP/1.0"),
        _refused("space-before-colon", "white space before the colon is refused", b"Host : localhost"),
        _passes("case-of-name", "the name compares in any case", b"hOsT: localhost"),
        _passes("case-of-value", "host names compare in any case", b"Host: LocalHost"),
        _passes("no-space", "no space is needed", b"Host:localhost"),
        _passes("white-space", "white space around it is not part of it", b"Host: \t localhost \t"),
        _passes("address", "an address is a host", b"Host: 127.0.0.1"),
        _passes("last", "Host may be the last field", b"X-A: b", b"Host: localhost"),
        Case("hosts/own-port", "9112 3.2", "the listener's own authority",
            (lambda lane: request(b"GET /x", host=b"Host: 127.0.0.1:%d\r\n" % lane.address[1]),), arrives(Want())),
        Case("hosts/name-port", "9112 3.2", "a name with the listener's port",
            (lambda lane: request(b"GET /x", host=b"Host: localhost:%d\r\n" % lane.address[1]),), arrives(Want())),
        _either("empty", "an empty Host is refused, or the default's", b"Host:"),
        _either("port-empty", "an empty port is the default's, or refused", b"Host: localhost:"),
        _either("port-other", "another port is ours, or refused", b"Host: localhost:1"),
        _either("port-65536", "a port beyond all is refused, or any", b"Host: localhost:65536"),
        _either("port-huge", "a port no integer holds is refused, or any", b"Host: localhost:99999999999999999999"),
        _either("trailing-dot", "a dot at the end is the root's, or refused", b"Host: localhost."),
        _either("address-6", "an address in brackets", b"Host: [::1]"),
        _either("address-6-port", "an address in brackets with a port", b"Host: [::1]:80"),
        _either("percent", "a name may be percent-encoded", b"Host: local%68ost"),
        _either("underscore", "an underscore is a sign of names", b"Host: my_name.localhost"),
        _either("long", "a name of 300 letters is refused, or any", b"Host: " + b"a" * 300),
        Case("hosts/missing-1.0", "9112 3.2", "HTTP/1.0 needs no Host", (b"GET /x HTTP/1.0\r\n\r\n",),
            either(arrives(Want()), gets(400, 421)), level="safety"),
        Case("hosts/upstream", "9110 7.2", "Host upstream is the upstream's authority", (request(b"GET /x"),),
            both(arrives(Want()), upstream_host), contract=True),
        Case("hosts/connection-nominates", "9110 7.6.1", "naming Host as hop-by-hop leaves one Host upstream",
            (request(b"GET /x", b"Connection: host"),),
            either(refused(), arrives(Want())), house=either(refused(), upstream_host)),
        Case("hosts/first-upstream", "9112 3.2", "Host comes first upstream", (request(b"GET /x", b"X-A: b"),),
            both(arrives(Want()), that("should", "Host is not the first field",
            lambda seen: seen.requests and seen.requests[0].fields.names()[0] == b"host")), level="SHOULD"),
        Case("hosts/421-goes-on", "9110 15.5.20", "after a 421 the connection goes on in order, or ends",
            (request(b"GET /x", host=b"Host: evil.example\r\n") + AFTER,),
            both(gets(421), either(gets(200, number=1, body=b"GET /after"),
            that("must", "neither answered nor ended", lambda seen: seen.callers[0].ended != "open"))),
            contract=True, finals={0: 2}, level="safety"),
        Case("hosts/421-post", "9110 15.5.20", "the body of a request that is 421 is no request",
            (request(b"POST /x", b"Content-Length: %d" % len(get(b"/smuggled")), host=b"Host: evil.example\r\n",
            body=get(b"/smuggled")),),
            both(gets(421), that("exploitable", "a body was answered", lambda seen: len(seen.finals()) == 1)),
            contract=True, level="safety"),
    ]
    found += [_refused(f"invalid-{name}", f"{value!r} is no Host", b"Host: " + value, statuses=(400, 421)) for name,
        value in INVALID]
    found += [_foreign(name, value) for name, value in (
        ("name", b"evil.example"), ("name-port", b"evil.example:8080"), ("localhost-first", b"localhost.evil.example"),
        ("address-first", b"127.0.0.1.evil.example"),
        ("localhost-last", b"evillocalhost"), ("hyphen", b"evil-localhost"), ("private", b"10.0.0.1"),
        ("any", b"0.0.0.0"), ("any-6", b"[::]"), ("decimal", b"2130706433.example"),
        ("near", b"128.0.0.1"), ("five-parts", b"127.0.0.1.1"), ("dot", b"."),
        ("dot-localhost-dot", b"localhost..evil.example"), ("upper", b"EVIL.EXAMPLE"))]
    found += [
        Case(f"hosts/local-{name}", "DESIGN 1.7", f"{value!r} is ours",
            (request(b"GET /x", host=b"Host: " + value + b"\r\n"),), arrives(Want()), contract=True)
        for name, value in (("sub", b"a.localhost"), ("sub-sub", b"a.b.localhost"), ("upper", b"LOCALHOST"),
            ("block", b"127.1.2.3"), ("six", b"[::1]"), ("port", b"a.localhost:1"))]
    return found
