# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Bytes before a request line (RFC 9112 §2.2), bytes that are not HTTP at all, the request line (§3) and its version (§2.3,
RFC 9110 §2.5)."""

from case import AFTER, HOST, SMUGGLED, Case, HalfClose, Pause, get, post
from judge import Want, arrives, both, either, nothing_upstream, refused, that


def _passes(name, about, *sent, wants=(Want(),), level="SHOULD", finals=1):
    return Case(f"openings/{name}", "9112 2.2", about, sent, arrives(*wants), level=level, finals={0: finals})


def _ignored(name, about, sent, wants=(Want(),), house=None):
    return Case(f"openings/{name}", "9112 2.2", about, (sent,), either(refused(silent=True), arrives(*wants)),
        house=house, level="safety",
                finals={0: len(wants)})


def _garbage(name, about, sent, statuses=(400, 505), level="SHOULD"):
    return Case(f"openings/{name}", "9112 2.2", about, (sent,), refused(*statuses, silent=True), level=level,
        closes=1.5)


CLIENT_HELLO = bytes.fromhex("16030100a5010000a10303") + bytes(range(32)) + bytes.fromhex(
    "20") + bytes(range(32)) + bytes.fromhex("0008130113021303c02f0100") + b"\x00\x05\x00\x0d\x00\x0a" + b"\r\n\r\n" + bytes(60)


def openings():
    return [
        _passes("empty-line", "one empty line before a request is ignored", b"\r\n" + get()),
        _passes("empty-line-apart", "one empty line before a request is ignored, sent by itself too", b"\r\n",
            Pause(0.03), get()),
        _passes("empty-line-split", "an empty line in two pieces is ignored", b"\r", Pause(0.02), b"\n" + get()),
        _passes("empty-line-after-post", "an empty line after a body is ignored",
            post(b"hello\r\n" + AFTER, b"Content-Length: 5"),
                wants=(Want(body=b"hello"), Want(b"/after")), finals=2),
        _passes("empty-line-after-get", "an empty line between requests is ignored", get() + b"\r\n" + AFTER,
            wants=(Want(), Want(b"/after")), finals=2),
        _ignored("empty-lines", "several empty lines are ignored, or refused", b"\r\n" * 4 + get()),
        _ignored("empty-lines-many", "100,000 empty lines are ignored, or refused", b"\r\n" * 100_000 + get()),
        _ignored("lf", "a bare LF before a request is ignored, or refused", b"\n" + get()),
        _ignored("cr", "a bare CR before a request is ignored, or refused", b"\r" + get()),
        _ignored("cr-cr-lf", "CR CR LF before a request is ignored, or refused", b"\r\r\n" + get()),
        _ignored("space-line", "a line of one space is ignored, or refused", b" \r\n" + get()),
        _ignored("space", "a space before the method is skipped, or refused", b" " + get()),
        _ignored("tab", "a tab before the method is skipped, or refused", b"\t" + get()),
        _garbage("nul", "a NUL before the method is refused", b"\x00" + get()),
        _garbage("byte-order-mark", "a byte order mark before the method is refused", b"\xef\xbb\xbf" + get()),
        _garbage("word-line", "a line that is no request line is refused", b"hello\r\n\r\n" + AFTER),
        _garbage("response", "a response is no request", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + AFTER),
        _garbage("field", "a field line is no request line", b"Host: localhost\r\n\r\n" + AFTER),
        _garbage("tls", "a TLS handshake is no request", CLIENT_HELLO),
        Case("openings/http-2-preface", "9113 3.4", "the preface of HTTP/2 is no request for the upstream",
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" + SMUGGLED,), nothing_upstream(),
            closes=1.5, level="MUST",
            house=refused(505, 400, silent=True), exempt=(b"rest",), finals={}),
        _garbage("binary", "bytes that are nothing are refused", bytes(range(128, 256)) * 40 + b"\r\n\r\n"),
        _garbage("smtp", "mail is refused", b"EHLO localhost\r\nMAIL FROM:<a@b>\r\n\r\n"),
        _garbage("json", "JSON is refused", b'{"jsonrpc":"2.0","method":"x"}\r\n\r\n'),
        _garbage("proxy-protocol", "a PROXY line is refused where nobody asked for it",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" + get()),
        Case("openings/proxy-protocol-2", "safety", "the binary PROXY preface is refused or ignored as garbage",
            (b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x7f\x00\x00\x01\x7f\x00\x00\x01\x00\x50\x00\x50" + get(),),
            refused(silent=True), level="safety", closes=1.5),
        Case("openings/nothing", "9112 9.3", "a connection without a request ends without one upstream", (HalfClose(),),
            nothing_upstream(),
            finals={}, closes=2.0, level="safety"),
        Case("openings/half-a-head", "9112 8", "half a head and a half-close is no request",
            (b"GET /x HTTP/1.1\r\nHost: local", Pause(0.03), HalfClose()),
            nothing_upstream(), finals={}, closes=2.0, level="MUST"),
        Case("openings/head-but-last-line", "9112 8", "a head without its empty line is no request",
            (b"GET /x HTTP/1.1\r\nHost: localhost\r\n", Pause(0.03), HalfClose()),
            nothing_upstream(), finals={}, closes=2.0, level="MUST"),
        Case("openings/head-but-last-lf", "9112 8", "a head without its last LF is no request",
            (b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r", Pause(0.03), HalfClose()),
            that("must", "a request reached the upstream", lambda seen: not seen.requests), finals={}, closes=2.0,
            level="MUST"),
    ]


def _line(line):
    return line + b"\r\n" + HOST + b"\r\n" + AFTER


def _refused(name, about, line, statuses=(400,), level="SHOULD", section="9112 3", silent=False, exempt=()):
    return Case(f"request-lines/{name}", section, about, (_line(line),), refused(*statuses, silent=silent), level=level,
        closes=1.0, finals={0: 2}, exempt=exempt)


def _either(name, about, line, want=Want(), level="safety", statuses=(400,), section="9112 3", house=True):
    return Case(f"request-lines/{name}", section, about, (_line(line),),
        either(refused(*statuses), arrives(want, Want(b"/after"))),
                house=refused(*statuses) if house else None, level=level, finals={0: 2})


VERSIONS = [
    ("lower-case", b"http/1.1"), ("mixed-case", b"Http/1.1"), ("no-minor", b"HTTP/1"), ("no-minor-digit", b"HTTP/1."),
        ("no-major", b"HTTP/.1"),
    ("two-digits-minor", b"HTTP/1.10"), ("leading-zero", b"HTTP/01.1"), ("three-parts", b"HTTP/1.1.1"),
        ("letter-behind", b"HTTP/1.1x"),
    ("space-inside", b"HTTP/ 1.1"), ("comma", b"HTTP/1,1"), ("minus", b"HTTP/-1.1"), ("plus", b"HTTP/+1.1"),
        ("wrong-name", b"HTP/1.1"), ("https", b"HTTPS/1.1"),
    ("icap", b"ICAP/1.0"), ("rtsp", b"RTSP/1.1"), ("no-slash", b"HTTP1.1"), ("backslash", b"HTTP\\1.1"),
        ("hex", b"HTTP/1.a"), ("nul-behind", b"HTTP/1.1\x00"),
    ("fullwidth", "HTTP/1.１".encode()), ("huge", b"HTTP/99999999999999999999.1"),
]


def lines():
    found = [
        _either("two-spaces", "two spaces are refused, or read as one", b"GET  /x HTTP/1.1"),
        _either("two-spaces-version", "two spaces are refused, or read as one", b"GET /x  HTTP/1.1"),
        _either("tab", "a tab is refused, or read as a space", b"GET\t/x\tHTTP/1.1"),
        _either("form-feed", "a form feed is refused, or read as a space", b"GET\x0c/x\x0cHTTP/1.1"),
        _either("vertical-tab", "a vertical tab is refused, or read as a space", b"GET\x0b/x\x0bHTTP/1.1"),
        _either("bare-cr", "a bare CR is refused, or read as a space", b"GET\r/x\rHTTP/1.1"),
        _either("trailing-space", "a space at the end is refused, or skipped", b"GET /x HTTP/1.1 "),
        _either("trailing-tab", "a tab at the end is refused, or skipped", b"GET /x HTTP/1.1\t"),
        _either("cr-cr-lf", "CR CR LF is refused, or skipped", b"GET /x HTTP/1.1\r"),
        _either("lf", "a bare LF ends the line, or is refused", b"GET /x HTTP/1.1\nX-A: b"),
        _refused("space-in-target", "white space in the target is refused, not repaired", b"GET /x y HTTP/1.1"),
        _refused("two-versions", "a second version is white space in the target", b"GET /x HTTP/1.1 HTTP/1.1"),
        _refused("two-targets", "a second target is refused", b"GET /x /y HTTP/1.1"),
        _refused("no-target", "a line without target is refused", b"GET HTTP/1.1"),
        _refused("no-target-space", "an empty target is refused", b"GET  HTTP/1.1"),
        _refused("no-method", "a line without method is refused", b"/x HTTP/1.1"),
        _refused("no-method-space", "an empty method is refused", b" /x HTTP/1.1"),
        _refused("method-only", "a method alone is refused", b"GET", silent=True),
        _refused("version-first", "words in another order are refused", b"HTTP/1.1 GET /x"),
        _refused("nul-in-target", "a NUL in the target is refused", b"GET /x\x00y HTTP/1.1"),
        _refused("control-in-target", "a control in the target is refused", b"GET /x\x01y HTTP/1.1"),
        _refused("delete-in-target", "a DEL in the target is refused", b"GET /x\x7fy HTTP/1.1"),
        _refused("no-break-space", "0xA0 is no space", b"GET\xa0/x\xa0HTTP/1.1"),
        _refused("nul-in-method", "a NUL in the method is refused", b"GE\x00T /x HTTP/1.1"),
        Case("request-lines/0.9", "9112 2.3", "a line without version is refused, or answered once and closed",
            (b"GET /x\r\n", AFTER),
            either(refused(505, silent=True), both(refused(any_error=True)),
                    that("should", "it was taken for HTTP/0.9 and more was read",
                    lambda seen: len(seen.requests) <= 1 and seen.callers[0].ended != "open")),
            level="SHOULD", closes=1.0, exempt=(b"rest", b"response"), house=refused(silent=True)),
        _refused("0.9-fields", "a line without version, but fields, is refused", b"GET /x", silent=True,
            statuses=(400, 505), exempt=(b"rest",)),
        _refused("0.9-named", "version 0.9 is refused", b"GET /x HTTP/0.9", statuses=(400, 505), section="9110 2.5",
            silent=True),
        _refused("2.0", "version 2.0 is refused", b"GET /x HTTP/2.0", statuses=(505, 400), section="9110 2.5",
            level="SHOULD"),
        _refused("2", "version 2 is refused", b"GET /x HTTP/2", statuses=(505, 400), section="9110 2.5",
            level="SHOULD"),
        _refused("3.0", "version 3.0 is refused", b"GET /x HTTP/3.0", statuses=(505, 400), section="9110 2.5",
            level="SHOULD"),
        _refused("9.9", "version 9.9 is refused", b"GET /x HTTP/9.9", statuses=(505, 400), section="9110 2.5",
            level="SHOULD"),
        _refused("0.0", "version 0.0 is refused", b"GET /x HTTP/0.0", statuses=(505, 400), section="9110 2.5",
            level="SHOULD"),
        Case("request-lines/1.2", "9110 2.5", "a higher minor version is read as 1.1", (_line(b"GET /x HTTP/1.2"),),
            arrives(Want(), Want(b"/after")),
            level="SHOULD", finals={0: 2}),
        Case("request-lines/1.9", "9110 2.5", "a higher minor version is read as 1.1", (_line(b"GET /x HTTP/1.9"),),
            arrives(Want(), Want(b"/after")),
            level="SHOULD", finals={0: 2}),
        Case("request-lines/1.0", "9110 2.5", "version 1.0 is answered, and forwarded in our own version",
            (b"GET /x HTTP/1.0\r\n" + HOST + b"\r\n",),
            both(arrives(Want()), that("must", "the version upstream is not the proxy's own",
                                        lambda seen: seen.requests and seen.requests[0].minor in (0, 1)))),
        Case("request-lines/8000-bytes", "9112 3", "a request line of 8000 bytes is read",
            (_line(b"GET /" + b"x" * 7900 + b" HTTP/1.1"),),
            arrives(Want(b"/" + b"x" * 7900), Want(b"/after")), level="SHOULD", finals={0: 2}),
        Case("request-lines/100-kib", "9112 3", "a target longer than one wishes to read is 414",
            (_line(b"GET /" + b"x" * 102_400 + b" HTTP/1.1"),),
            either(refused(414, exact=True), arrives(Want(None), Want(b"/after"))), house=refused(414), finals={0: 2},
            closes=1.0),
        Case("request-lines/100-kib-query", "9112 3", "a query longer than one wishes to read is 414",
            (_line(b"GET /?" + b"x" * 102_400 + b" HTTP/1.1"),),
            either(refused(414, exact=True), arrives(Want(None), Want(b"/after"))), house=refused(414), finals={0: 2},
            closes=1.0),
        Case("request-lines/endless", "9112 3", "a target without end is 414 before its megabytes are kept",
            (b"GET /", b"x" * 2_400_000),
            refused(414, exact=False, silent=True), level="MUST", closes=3.0),
        Case("request-lines/endless-method", "9112 3", "a method without end is refused", (b"G" * 2_400_000,),
            refused(400, 414, 501, 431, silent=True), level="SHOULD", closes=3.0),
        Case("request-lines/endless-version", "9112 3", "a version without end is refused",
            (b"GET /x HTTP/1.", b"1" * 2_400_000),
            refused(400, 414, 431, 505, silent=True), level="SHOULD", closes=3.0),
    ]
    return found + [_refused(f"version-{name}", f"{value!r} is no version", b"GET /x " + value, statuses=(400, 505),
        section="9112 2.3")
                    for name, value in VERSIONS]


def cases():
    return [*openings(), *lines()]
