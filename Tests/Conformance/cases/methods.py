# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Methods (RFC 9110 §9): those that pass, invalid tokens, and those that a gateway refuses."""

from case import AFTER, Case, get, request
from judge import Want, arrives, both, either, gets, nothing_upstream, refused, that


def _passes(method):
    name = method.decode()
    want = Want(method=method)
    return Case(
        f"methods/{name.lower() if name.isalpha() and name.isupper() else 'as-is-' + str(sum(method))}", "9110 9.1",
        f"{name} arrives as {name}",
        (request(method + b" /x") + AFTER,),
        either(arrives(want, Want(b"/after")), both(nothing_upstream_of(method), gets(405, 501, 400))),
        house=arrives(want, Want(b"/after")), level="SHOULD", finals={0: 2}, methods={0: [name]})


def nothing_upstream_of(method):
    return that("must", f"{method!r} was forwarded and refused",
        lambda seen: not any(each.method == method for each in seen.requests))


def _no_token(name, method):
    return Case(
        f"methods/{name}", "9112 3", f"{method!r} is no method", (request(method + b" /x") + AFTER,), refused(400, 501),
        level="SHOULD",
        closes=1.0, finals={0: 2})


# Bytes that a caller sends after CONNECT without waiting are meant for the tunnel. Without a tunnel, they must not be read.
NO_TUNNEL = both(that("should", "what was meant for a tunnel was read as requests", lambda seen: not seen.requests),
                 that("should", "the connection stays open", lambda seen: seen.callers[0].ended != "open"))


def cases():
    found = [_passes(method) for method in (
        b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"PROPFIND", b"REPORT", b"QUERY", b"FOO",
        b"M-SEARCH", b"get", b"Get",
        b"!#$%&'*+-.^_`|~1", b"X" * 60)]
    found += [_no_token(name, method) for name, method in (
        ("at", b"G@T"), ("comma", b"GET,POST"), ("parentheses", b"(GET)"), ("colon", b"GET:"), ("slash", b"GET/"),
        ("quote", b'"GET"'),
        ("not-ascii", b"G\xc3\x89T"), ("control", b"G\x01T"), ("equals", b"A=B"), ("brackets", b"[GET]"),
        ("braces", b"{GET}"), ("semicolon", b"GET;"),
        ("delete-sign", b"GET\x7f"), ("back-slash", b"GET\\"))]
    allow = that("must", "405 without Allow",
        lambda seen: not seen.finals() or seen.finals()[0].status != 405 or seen.finals()[0].fields.all(b"allow"))
    found += [
        Case("methods/trace", "9110 9.3.8", "TRACE is not served, or shows nothing secret",
            (request(b"TRACE /x", b"Cookie: a=b", b"Authorization: Basic eA=="),),
            both(allow, either(both(nothing_upstream(), gets(405, 501, 400, 403)), gets(200, complete=False))),
            house=both(nothing_upstream(), gets(405)), level="safety"),
        Case("methods/trace-body", "9110 9.3.8", "TRACE with content is refused, and no request hidden in it",
            (request(b"TRACE /x", b"Content-Length: 5", body=b"hello" + AFTER),),
            both(allow, that("exploitable", "its content was taken for a request",
            lambda seen: all(each.target in (b"/x", b"/after") for each in seen.requests))), finals={0: 2},
            house=gets(405)),
        Case("methods/connect", "9110 9.3.6", "CONNECT is refused, or answered by the upstream, and opens no tunnel",
            (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n" + AFTER,),
            both(allow, that("exploitable", "a tunnel was opened",
            lambda seen: not seen.finals() or seen.finals()[0].status >= 400 or seen.requests)),
            house=both(gets(405), NO_TUNNEL), finals={0: 2}, exempt=(b"rest",), level="safety"),
        Case("methods/connect-path", "9112 3.2.3", "CONNECT with a path is refused", (request(b"CONNECT /x") + AFTER,),
            both(allow, that("exploitable", "a tunnel was opened",
            lambda seen: not seen.finals() or seen.finals()[0].status >= 400)),
            house=both(gets(405, 400), NO_TUNNEL), finals={0: 2}, level="safety"),
        Case("methods/connect-elsewhere", "9110 9.3.6", "CONNECT reaches no other host",
            (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\nhello",),
            both(allow, that("exploitable", "a tunnel was opened",
            lambda seen: seen.finals()[0].status >= 400 or seen.requests)), level="safety", exempt=(b"rest",)),
        Case("methods/405-keeps", "9110 15.5.6", "after a refused method the connection goes on in order, or ends",
            (request(b"TRACE /x") + AFTER,),
            that("must", "answers out of order",
            lambda seen: len(seen.finals()) == 2 or seen.callers[0].ended != "open"), finals={0: 2}, level="safety"),
        Case("methods/head-has-no-body", "9110 9.3.2", "HEAD has no body, and the next answer begins where it ought",
            (request(b"HEAD /x") + get(b"/after"),), both(gets(200, body=b""), gets(200, number=1, body=b"GET /after")),
            finals={0: 2}, methods={0: ["HEAD", "GET"]}),
        Case("methods/long", "9110 15.6.2", "a method of 20,000 letters is refused",
            (request(b"X" * 20_000 + b" /x") + AFTER,),
            either(refused(400, 501, 414, 431), arrives(Want(), Want(b"/after"))), level="SHOULD", finals={0: 2},
            closes=1.0),
    ]
    return found
