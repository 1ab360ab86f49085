# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Fields of requests and of responses that end at the proxy (RFC 9110 §7.6.1), and fields of responses that must pass."""

from case import AFTER, CLOSE, Case, Reply, get, ok, post, request, response
from judge import Want, arrives, both, either, gets, refused, stays, that


def _gone(name, about, *lines, lacks, has=(), section="9110 7.6.1", level="MUST", method=b"GET", closes=None):
    return Case(
        f"hop-by-hop/{name}", section, about, (request(method + b" /x", *lines),),
        arrives(Want(lacks=lacks, has=has), closes=closes),
        level=level)


def _connection_is_own(seen):
    """No option of the caller's got through, but those that the proxy uses itself."""
    return all(option in (b"close", b"keep-alive", b"te",
        b"upgrade") for each in seen.requests for option in each.fields.members(b"connection"))


OWN = that("must", "an option of the caller's Connection went upstream", _connection_is_own)


def requests():
    found = [
        _gone("keep-alive", "Keep-Alive ends here", b"Connection: keep-alive", b"Keep-Alive: timeout=5, max=10",
            lacks=(b"keep-alive",)),
        _gone("keep-alive-unnamed", "Keep-Alive ends here though Connection does not name it", b"Keep-Alive: timeout=5",
            lacks=(b"keep-alive",), level="SHOULD"),
        _gone("proxy-connection", "Proxy-Connection ends here", b"Proxy-Connection: keep-alive",
            lacks=(b"proxy-connection",), level="SHOULD"),
        _gone("proxy-connection-named", "Proxy-Connection ends here", b"Connection: proxy-connection",
            b"Proxy-Connection: close", lacks=(b"proxy-connection",)),
        _gone("te-gzip", "TE ends here", b"TE: gzip", b"Connection: TE", lacks=()),
        Case("hop-by-hop/te", "9110 10.1.4", "of TE only trailers may go on, and Connection names it then",
            (get(b"/x", b"TE: gzip;q=0.5, trailers, deflate", b"Connection: TE"),),
            both(arrives(Want()), that("must", "TE went on with codings that the proxy does not decode",
            lambda seen: set(seen.requests[0].fields.members(b"te")) <= {b"trailers"}),
                  that("must", "TE went on, and Connection does not name it",
                       lambda seen: not seen.requests[0].fields.all(b"te") or b"te" in seen.requests[0].fields.members(b"connection")))),
        Case("hop-by-hop/te-unnamed", "9110 10.1.4", "TE that Connection does not name may not go on unnamed",
            (get(b"/x", b"TE: gzip"),), both(arrives(Want()),
            that("should", "TE went on", lambda seen: not seen.requests[0].fields.all(b"te"))), level="SHOULD"),
        _gone("transfer-encoding", "Transfer-Encoding is each hop's own", b"Connection: transfer-encoding",
            lacks=(b"transfer-encoding",)),
        _gone("upgrade-unnamed", "Upgrade that Connection does not name ends here", b"Upgrade: websocket",
            lacks=(b"upgrade",), level="SHOULD"),
        _gone("trailer", "Trailer that Connection names ends here", b"Connection: trailer", b"Trailer: X-T",
            lacks=(b"trailer",)),
        _gone("proxy-authorization-named", "Proxy-Authorization that Connection names ends here",
            b"Connection: proxy-authorization",
              b"Proxy-Authorization: Basic eA==", lacks=(b"proxy-authorization",)),
        _gone("custom", "a field that Connection names ends here", b"Connection: x-foo", b"X-Foo: 1", b"X-Bar: 2",
            lacks=(b"x-foo",), has=((b"x-bar", b"2"),)),
        _gone("custom-before", "a field that stands before the Connection that names it ends here", b"X-Foo: 1",
            b"Connection: x-foo", lacks=(b"x-foo",)),
        _gone("custom-case", "Connection's options compare in any case", b"Connection: X-fOO", b"x-Foo: 1",
            lacks=(b"x-foo",)),
        _gone("custom-twice", "all lines of a field that Connection names end here", b"Connection: x-foo", b"X-Foo: 1",
            b"X-Bar: 2", b"X-Foo: 3", lacks=(b"x-foo",)),
        _gone("custom-several", "each field that Connection names ends here", b"Connection: x-a, x-b , x-c", b"X-A: 1",
            b"X-B: 2", b"X-C: 3", b"X-D: 4",
              lacks=(b"x-a", b"x-b", b"x-c"), has=((b"x-d", b"4"),)),
        _gone("custom-lines", "several lines of Connection are one list", b"Connection: x-a", b"X-A: 1", b"X-B: 2",
            b"Connection: x-b", lacks=(b"x-a", b"x-b")),
        _gone("custom-white-space", "white space and empty members in Connection count for nothing",
            b"Connection: , ,\t x-a\t,,x-b ,", b"X-A: 1", b"X-B: 2", lacks=(b"x-a", b"x-b")),
        _gone("custom-no-space", "Connection needs no spaces", b"Connection:x-a,x-b", b"X-A: 1", b"X-B: 2",
            lacks=(b"x-a", b"x-b")),
        _gone("custom-with-close", "close beside a named field does both", b"Connection: close, x-foo", b"X-Foo: 1",
            lacks=(b"x-foo",), closes=True),
        _gone("custom-with-keep-alive", "keep-alive beside a named field does both", b"Connection: keep-alive, x-foo",
            b"X-Foo: 1", lacks=(b"x-foo",)),
        _gone("absent", "a named field may be absent", b"Connection: x-foo", lacks=(b"x-foo",)),
        _gone("prefix", "a named field's name is not a beginning", b"Connection: x-fo", b"X-Foo: 1", lacks=(b"x-fo",),
            has=((b"x-foo", b"1"),)),
        _gone("many", "30 named fields end here", b"Connection: " + b", ".join(b"x-%d" % n for n in range(30)),
            *(b"X-%d: y" % n for n in range(30)),
              lacks=tuple(b"x-%d" % n for n in range(30))),
        _gone("authorization", "Authorization that Connection names ends here", b"Connection: authorization",
            b"Authorization: Basic eA==", lacks=(b"authorization",)),
        _gone("cookie", "Cookie that Connection names ends here", b"Connection: cookie", b"Cookie: a=b",
            lacks=(b"cookie",)),
        _gone("x-forwarded-for", "X-Forwarded-For that Connection names ends here", b"Connection: x-forwarded-for",
            b"X-Forwarded-For: 1.2.3.4", lacks=()),
        _gone("cache-control", "Cache-Control that Connection names ends here", b"Connection: cache-control",
            b"Cache-Control: no-store", lacks=(b"cache-control",)),
        _gone("via-named", "Via that Connection names is replaced by ours, not dropped", b"Connection: via",
            b"Via: 1.1 other", lacks=()),
        _gone("accept-encoding", "Accept-Encoding passes unless it is named", b"Accept-Encoding: br", lacks=(),
            has=((b"accept-encoding", b"br"),)),
        Case("hop-by-hop/options", "9110 7.6.1", "the caller's Connection is replaced",
            (get(b"/x", b"Connection: x-foo, keep-alive, x-bar"),), both(arrives(Want()), OWN)),
        Case("hop-by-hop/connection-itself", "9110 7.6.1", "Connection may name itself",
            (get(b"/x", b"Connection: connection, x-foo", b"X-Foo: 1"),),
            both(arrives(Want(lacks=(b"x-foo",))), OWN)),
        Case("hop-by-hop/content-type", "9110 7.6.1", "naming Content-Type removes the field and leaves the body",
            (post(b"hello" + AFTER, b"Content-Length: 5", b"Content-Type: text/plain", b"Connection: content-type"),),
            arrives(Want(body=b"hello", lacks=(b"content-type",)), Want(b"/after")), finals={0: 2}),
        Case("hop-by-hop/content-length", "9110 7.6.1", "naming Content-Length leaves the body framed",
            (post(b"hello" + AFTER, b"Content-Length: 5", b"Connection: content-length"),),
            either(refused(), arrives(Want(body=b"hello"), Want(b"/after"))), finals={0: 2}),
        Case("hop-by-hop/expect", "9110 7.6.1", "naming Expect leaves the body whole",
            (post(b"hello" + AFTER, b"Content-Length: 5", b"Expect: 100-continue", b"Connection: expect"),),
            either(refused(400, 417), arrives(Want(body=b"hello"), Want(b"/after"))), finals={0: 2}),
        Case("hop-by-hop/close-not-forwarded", "9110 7.6.1", "the caller's close is the caller's own",
            (get(b"/x", b"Connection: close"),),
            both(arrives(Want(), closes=True),
            that("should", "the answer does not say close",
            lambda seen: seen.finals() and b"close" in seen.finals()[0].fields.members(b"connection")))),
        Case("hop-by-hop/proxy-connection-close", "9112 C.2.2", "Proxy-Connection does not rule our connection",
            (get(b"/x", b"Proxy-Connection: close") + AFTER,), arrives(Want(), Want(b"/after")), level="SHOULD",
            finals={0: 2}),
        Case("hop-by-hop/proxy-connection-1.0", "9112 C.2.2", "Proxy-Connection: keep-alive of HTTP/1.0 keeps nothing",
            (b"GET /x HTTP/1.0\r\nHost: localhost\r\nProxy-Connection: keep-alive\r\n\r\n",),
            arrives(Want(lacks=(b"proxy-connection",)), closes=True), level="SHOULD"),
        Case("hop-by-hop/http2-settings", "9113 3.1", "HTTP2-Settings that Connection names ends here",
            (get(b"/x", b"Connection: HTTP2-Settings", b"HTTP2-Settings: AAMAAABk"),),
            arrives(Want(lacks=(b"http2-settings",)))),
        Case("hop-by-hop/unknown-passes", "9110 5.1", "a field that nobody knows passes",
            (get(b"/x", b"X-Anything: at all"),),
            arrives(Want(has=((b"x-anything", b"at all"),)))),
    ]
    for name, value in (("quoted", b'"x-foo"'), ("space", b"x-foo x-bar"), ("not-ascii", b"x-f\xc3\xb6o"),
        ("slash", b"x/foo"), ("equals", b"close=1"), ("parameter", b"close;q=1")):
        found.append(Case(
            f"hop-by-hop/odd-option-{name}", "9110 7.6.1", "an option that is no token is refused, or goes no further",
            (get(b"/x", b"Connection: " + value),),
            either(refused(), both(arrives(Want()), OWN)), level="safety"))
    return found


def _gone_down(name, about, *lines, lacks, has=(), level="MUST", section="9110 7.6.1"):
    return Case(
        f"hop-by-hop-down/{name}", section, about, (get(),), gets(200, body=b"hello", lacks=lacks, has=has),
        upstream=(Reply.of(ok(b"hello", *lines)),), level=level)


def _passes_down(name, about, *lines, has, section="9110 7.7", level="MUST"):
    return _gone_down(name, about, *lines, lacks=(), has=has, section=section, level=level)


def _option_own(seen):
    return all(option in (b"close", b"keep-alive") for option in seen.finals()[0].fields.members(b"connection"))


def responses():
    return [
        _gone_down("keep-alive", "Keep-Alive ends here", b"Connection: keep-alive", b"Keep-Alive: timeout=5, max=10",
            lacks=()),
        Case("hop-by-hop-down/keep-alive-unnamed", "9110 7.6.1", "the upstream's Keep-Alive is not the caller's",
            (get(),),
            both(gets(200), that("should", "the upstream's Keep-Alive went on",
            lambda seen: seen.finals()[0].fields.one(b"keep-alive") != b"timeout=77")),
            upstream=(Reply.of(ok(b"hello", b"Keep-Alive: timeout=77")),), level="SHOULD"),
        _gone_down("proxy-connection", "Proxy-Connection ends here", b"Proxy-Connection: keep-alive",
            lacks=(b"proxy-connection",), level="SHOULD"),
        _gone_down("custom", "a field that Connection names ends here", b"Connection: x-foo", b"X-Foo: 1", b"X-Bar: 2",
            lacks=(b"x-foo",), has=((b"x-bar", b"2"),)),
        _gone_down("custom-before", "a field before the Connection that names it ends here", b"X-Foo: 1",
            b"Connection: x-foo", lacks=(b"x-foo",)),
        _gone_down("custom-case", "options compare in any case", b"Connection: X-fOO", b"x-Foo: 1", lacks=(b"x-foo",)),
        _gone_down("custom-lines", "several lines of Connection are one list", b"Connection: x-a", b"X-A: 1", b"X-B: 2",
            b"Connection: x-b", lacks=(b"x-a", b"x-b")),
        _gone_down("custom-several", "each named field ends here", b"Connection: ,x-a , x-b,", b"X-A: 1", b"X-B: 2",
            b"X-C: 3", lacks=(b"x-a", b"x-b"), has=((b"x-c", b"3"),)),
        _gone_down("set-cookie-named", "Set-Cookie that Connection names ends here", b"Connection: set-cookie",
            b"Set-Cookie: a=b", lacks=(b"set-cookie",)),
        _gone_down("content-type-named", "Content-Type that Connection names ends here", b"Connection: content-type",
            b"Content-Type: text/plain", lacks=(b"content-type",)),
        _gone_down("length-named", "naming Content-Length leaves the body framed", b"Connection: content-length", lacks=()),
        _gone_down("upgrade-named", "Upgrade that Connection names ends here, unless it is ours", b"Connection: upgrade",
            b"Upgrade: h2c", lacks=(b"upgrade",)),
        _gone_down("upgrade-unnamed", "Upgrade of a plain response ends here", b"Upgrade: h2,h2c", lacks=(b"upgrade",),
            level="SHOULD"),
        _gone_down("proxy-authenticate-named", "Proxy-Authenticate that Connection names ends here",
            b"Connection: proxy-authenticate", b"Proxy-Authenticate: Basic", lacks=(b"proxy-authenticate",)),
        _gone_down("proxy-authentication-info-named", "Proxy-Authentication-Info that Connection names ends here",
            b"Connection: proxy-authentication-info",
              b"Proxy-Authentication-Info: x=y", lacks=(b"proxy-authentication-info",)),
        _gone_down("te", "TE that Connection names ends here", b"Connection: te", b"TE: trailers", lacks=(b"te",)),
        Case("hop-by-hop-down/options", "9110 7.6.1", "the upstream's Connection is replaced", (get(),),
            both(gets(200), that("must", "an option of the upstream's went on", _option_own)),
            upstream=(Reply.of(ok(b"hello", b"Connection: x-foo, keep-alive, x-bar")),)),
        Case("hop-by-hop-down/close", "9110 7.6.1", "the upstream's close is not the caller's",
            (get() + AFTER,), both(gets(200, body=b"hello"),
            either(gets(200, number=1), that("must", "neither", lambda seen: seen.callers[0].ended != "open"))),
            upstream=(Reply.of(ok(b"hello", b"Connection: close"), CLOSE),), finals={0: 2}),
        Case("hop-by-hop-down/transfer-encoding", "9112 6.1", "the upstream's chunks are the proxy's to make anew",
            (get(),), gets(200, body=b"hello"),
            upstream=(Reply.of(response(b"Transfer-Encoding: chunked", b"Connection: transfer-encoding",
            body=b"5\r\nhello\r\n0\r\n\r\n")),)),
        Case("hop-by-hop-down/trailer-named", "9110 7.6.1", "Trailer that Connection names ends here", (get(),),
            gets(200, body=b"hello", lacks=(b"trailer",)),
            upstream=(Reply.of(response(b"Transfer-Encoding: chunked", b"Connection: trailer", b"Trailer: X-T",
            body=b"5\r\nhello\r\n0\r\n\r\n")),)),
        Case("hop-by-hop-down/407", "9110 11.7", "a 407 of the upstream arrives as something", (get(),), gets(407, 502),
            upstream=(Reply.of(ok(b"no", b"Proxy-Authenticate: Basic realm=x",
            status=b"407 Proxy Authentication Required")),), level="safety", exempt=(b"local",)),
        Case("hop-by-hop-down/1xx", "9110 7.6.1", "a field that Connection names in a 103 ends here", (get(),),
            both(gets(200), that("must", "X-Foo went on in a 103",
            lambda seen: not any(each.fields.all(b"x-foo") for each in seen.callers[0].responses))),
            upstream=(Reply.of(b"HTTP/1.1 103 Early Hints\r\nConnection: x-foo\r\nX-Foo: 1\r\nLink: </a>\r\n\r\n" + ok()),)),
        _passes_down("unknown", "a field that nobody knows passes", b"X-Anything: at all", has=((b"x-anything", b"at all"),),
            section="9110 5.1"),
        _passes_down("empty", "a field may be empty", b"X-Empty:", has=((b"x-empty", b""),)),
        _passes_down("latin", "bytes above 0x7F pass as they are", b"X-A: caf\xe9", has=((b"x-a", b"caf\xe9"),),
            level="SHOULD"),
        _passes_down("date", "the upstream's Date passes", b"Date: Sun, 06 Nov 1994 08:49:37 GMT",
            has=((b"date", b"Sun, 06 Nov 1994 08:49:37 GMT"),), section="9110 6.6.1"),
        _passes_down("server", "the upstream's Server passes", b"Server: other/1.0", has=((b"server", b"other/1.0"),),
            section="9110 10.2.4", level="SHOULD"),
        _passes_down("encoding", "a coded body passes as it is", b"Content-Encoding: gzip",
            has=((b"content-encoding", b"gzip"),)),
        _passes_down("ranges", "Accept-Ranges and ETag pass", b"Accept-Ranges: bytes", b'ETag: "a"',
            has=((b"accept-ranges", b"bytes"), (b"etag", b'"a"'))),
        Case("hop-by-hop-down/authenticate", "9110 11.6.1", "WWW-Authenticate of a 200 passes as it is, or not at all",
            (get(),),
            either(gets(200, has=((b"www-authenticate", b'Basic realm="x", Other a=b'),)),
            gets(200, lacks=(b"www-authenticate",))), level="safety",
            upstream=(Reply.of(ok(b"hello", b'WWW-Authenticate: Basic realm="x", Other a=b')),)),
        Case("hop-by-hop-down/date-added", "9110 6.6.1", "a response without Date gets one", (get(),),
            both(gets(200), that("must", "no Date", lambda seen: len(seen.finals()[0].fields.all(b"date")) == 1)),
            upstream=(Reply.of(ok()),)),
        Case("hop-by-hop-down/cookies", "9110 5.3", "several Set-Cookie stay several, in order", (get(),),
            both(gets(200), that("must", "the cookies are not what they were",
            lambda seen: seen.finals()[0].fields.all(b"set-cookie") == [b"a=1; Path=/", b"b=2", b"a=3"])),
            upstream=(Reply.of(ok(b"hello", b"Set-Cookie: a=1; Path=/", b"Set-Cookie: b=2", b"X-A: y",
            b"Set-Cookie: a=3")),)),
        Case("hop-by-hop-down/401", "9110 11.6.1", "a challenge nobody answers passes as it came", (get(),),
            gets(401, body=b"who?", has=((b"www-authenticate", b'Basic realm="a, b"'),)),
            upstream=(Reply.of(ok(b"who?", b'WWW-Authenticate: Basic realm="a, b"', status=b"401 Unauthorized")),)),
        Case("hop-by-hop-down/reason", "9112 4", "any reason phrase passes, or is replaced", (get(),),
            both(gets(200), stays()),
            upstream=(Reply.of(ok(status=b"200 Fine: \xc3\xa4 (\"so\")")),)),
        Case("hop-by-hop-down/status-unknown", "9110 15", "a status nobody knows passes", (get(),),
            gets(299, body=b"hello"), upstream=(Reply.of(ok(status=b"299 Odd")),)),
        Case("hop-by-hop-down/status-unknown-4xx", "9110 15", "an error nobody knows passes", (get(),),
            gets(499, body=b"hello"), upstream=(Reply.of(ok(status=b"499 Odd")),)),
    ]


def cases():
    return [*requests(), *responses()]
