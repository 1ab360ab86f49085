# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Fields of responses that end at the proxy (RFC 9110 §7.6.1), and fields that must pass."""

from case import AFTER, CLOSE, Case, Reply, get, ok, response
from judge import both, either, gets, stays, that


def _gone(name, about, *lines, lacks, has=(), level="MUST", section="9110 7.6.1"):
    return Case(
        f"hop-by-hop-down/{name}", section, about, (get(),), gets(200, body=b"hello", lacks=lacks, has=has),
        upstream=(Reply.of(ok(b"hello", *lines)),), level=level)


def _passes(name, about, *lines, has, section="9110 7.7", level="MUST"):
    return _gone(name, about, *lines, lacks=(), has=has, section=section, level=level)


def _option_own(seen):
    return all(option in (b"close", b"keep-alive") for option in seen.finals()[0].fields.members(b"connection"))


def cases():
    return [
        _gone("keep-alive", "Keep-Alive ends here", b"Connection: keep-alive", b"Keep-Alive: timeout=5, max=10",
            lacks=()),
        Case("hop-by-hop-down/keep-alive-unnamed", "9110 7.6.1", "the upstream's Keep-Alive is not the caller's",
            (get(),),
            both(gets(200), that("should", "the upstream's Keep-Alive went on",
            lambda seen: seen.finals()[0].fields.one(b"keep-alive") != b"timeout=77")),
            upstream=(Reply.of(ok(b"hello", b"Keep-Alive: timeout=77")),), level="SHOULD"),
        _gone("proxy-connection", "Proxy-Connection ends here", b"Proxy-Connection: keep-alive",
            lacks=(b"proxy-connection",), level="SHOULD"),
        _gone("custom", "a field that Connection names ends here", b"Connection: x-foo", b"X-Foo: 1", b"X-Bar: 2",
            lacks=(b"x-foo",), has=((b"x-bar", b"2"),)),
        _gone("custom-before", "a field before the Connection that names it ends here", b"X-Foo: 1",
            b"Connection: x-foo", lacks=(b"x-foo",)),
        _gone("custom-case", "options compare in any case", b"Connection: X-fOO", b"x-Foo: 1", lacks=(b"x-foo",)),
        _gone("custom-lines", "several lines of Connection are one list", b"Connection: x-a", b"X-A: 1", b"X-B: 2",
            b"Connection: x-b", lacks=(b"x-a", b"x-b")),
        _gone("custom-several", "each named field ends here", b"Connection: ,x-a , x-b,", b"X-A: 1", b"X-B: 2",
            b"X-C: 3", lacks=(b"x-a", b"x-b"), has=((b"x-c", b"3"),)),
        _gone("set-cookie-named", "Set-Cookie that Connection names ends here", b"Connection: set-cookie",
            b"Set-Cookie: a=b", lacks=(b"set-cookie",)),
        _gone("content-type-named", "Content-Type that Connection names ends here", b"Connection: content-type",
            b"Content-Type: text/plain", lacks=(b"content-type",)),
        _gone("length-named", "naming Content-Length leaves the body framed", b"Connection: content-length", lacks=()),
        _gone("upgrade-named", "Upgrade that Connection names ends here, unless it is ours", b"Connection: upgrade",
            b"Upgrade: h2c", lacks=(b"upgrade",)),
        _gone("upgrade-unnamed", "Upgrade of a plain response ends here", b"Upgrade: h2,h2c", lacks=(b"upgrade",),
            level="SHOULD"),
        _gone("proxy-authenticate-named", "Proxy-Authenticate that Connection names ends here",
            b"Connection: proxy-authenticate", b"Proxy-Authenticate: Basic", lacks=(b"proxy-authenticate",)),
        _gone("proxy-authentication-info-named", "Proxy-Authentication-Info that Connection names ends here",
            b"Connection: proxy-authentication-info",
              b"Proxy-Authentication-Info: x=y", lacks=(b"proxy-authentication-info",)),
        _gone("te", "TE that Connection names ends here", b"Connection: te", b"TE: trailers", lacks=(b"te",)),
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
        _passes("unknown", "a field that nobody knows passes", b"X-Anything: at all", has=((b"x-anything", b"at all"),),
            section="9110 5.1"),
        _passes("empty", "a field may be empty", b"X-Empty:", has=((b"x-empty", b""),)),
        _passes("latin", "bytes above 0x7F pass as they are", b"X-A: caf\xe9", has=((b"x-a", b"caf\xe9"),),
            level="SHOULD"),
        _passes("date", "the upstream's Date passes", b"Date: Sun, 06 Nov 1994 08:49:37 GMT",
            has=((b"date", b"Sun, 06 Nov 1994 08:49:37 GMT"),), section="9110 6.6.1"),
        _passes("server", "the upstream's Server passes", b"Server: other/1.0", has=((b"server", b"other/1.0"),),
            section="9110 10.2.4", level="SHOULD"),
        _passes("encoding", "a coded body passes as it is", b"Content-Encoding: gzip",
            has=((b"content-encoding", b"gzip"),)),
        _passes("ranges", "Accept-Ranges and ETag pass", b"Accept-Ranges: bytes", b'ETag: "a"',
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
