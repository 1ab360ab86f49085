# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Status lines (RFC 9112 §4): an invalid answer is 502, a late one 504. Heads without an end (RFC 9110 §5.4): limited, and no hang."""

from case import CLOSE, RESET, SILENCE, SMUGGLED, Case, Pause, Reply, get, post, response
from judge import bad_gateway, both, broken, either, gets, that

FINE = b"Content-Length: 5\r\n\r\nhello"


def _bad(name, about, data, *more, section="9112 4", level="MUST", statuses=(502,), early=False):
    return Case(f"heads/{name}", section, about, (get(),), bad_gateway(statuses=statuses),
        upstream=(Reply.of(data, *(more or (CLOSE,)), early=early),), sticky=True, level=level)


def either_way(name, about, data, *ways, section="9112 4", level="MUST", strict=True, more=()):
    """502, or made harmless on its way."""
    return Case(f"heads/{name}", section, about, (get(),), either(bad_gateway(), *ways),
        upstream=(Reply.of(data, *more),), sticky=True, level=level,
                house=bad_gateway() if strict else None)


def _line(line):
    return line + b"\r\nX-Up: 1\r\n" + FINE


LINES = [
    ("wrong-name", b"HTP/1.1 200 OK"), ("lower-case", b"http/1.1 200 OK"), ("two-digits", b"HTTP/1.1 20 OK"),
        ("four-digits", b"HTTP/1.1 2000 OK"), ("word", b"HTTP/1.1 abc OK"),
    ("no-status", b"HTTP/1.1"), ("no-version", b"200 OK"), ("minus", b"HTTP/1.1 -200 OK"), ("zero", b"HTTP/1.1 000 OK"),
        ("ninety-nine", b"HTTP/1.1 099 OK"),
    ("version-2", b"HTTP/2 200"), ("version-2.0", b"HTTP/2.0 200 OK"), ("version-9", b"HTTP/9.9 200 OK"),
        ("no-slash", b"HTTP 200 OK"), ("icy", b"ICY 200 OK"),
    ("status-glued", b"HTTP/1.1 200OK"), ("hex-status", b"HTTP/1.1 2a0 OK"), ("request", b"GET / HTTP/1.1"),
        ("garbage", b"\x00\x01\x02\x03"), ("plus", b"HTTP/1.1 +20 OK"),
]


def status_lines():
    passes = gets(200, body=b"hello")
    no_cr = that("exploitable", "a bare CR or NUL went through",
        lambda seen: b"a\rb" not in seen.callers[0].received and b"a\x00b" not in seen.callers[0].received)
    found = [_bad(f"line-{name}", f"{line!r} is no status line", _line(line)) for name, line in LINES]
    found += [
        _bad("nothing", "an end without an answer", b"", CLOSE, section="9110 15.6.3"),
        _bad("nothing-reset", "a reset without an answer", b"", RESET, section="9110 15.6.3"),
        _bad("early-close", "an end while the request is read", b"", CLOSE, section="9110 15.6.3", early=True),
        _bad("half-line", "an end within the status line", b"HTTP/1.1 20", CLOSE),
        _bad("half-head", "an end within the head", b"HTTP/1.1 200 OK\r\nContent-Len", CLOSE),
        _bad("head-but-last-line", "an end before the empty line", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", CLOSE),
        _bad("html", "a page without a head", b"<html><body>hello</body></html>\r\n\r\n", CLOSE),
        _bad("smtp", "another protocol", b"220 mail.example ESMTP\r\n", Pause(0.1), CLOSE),
        _bad("tls", "a TLS alert", b"\x15\x03\x01\x00\x02\x02\x46", Pause(0.1), CLOSE),
        _bad("http-2", "frames of HTTP/2", b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64", Pause(0.1),
            CLOSE),
        _bad("space-first", "white space before the status line", b" " + _line(b"HTTP/1.1 200 OK")),
        either_way("status-600", "a status beyond 599 is 502, or passes", _line(b"HTTP/1.1 600 Odd"), gets(600),
            gets(500, 502), section="9110 15", level="safety", strict=False),
        either_way("status-999", "a status beyond 599 is 502, or passes", _line(b"HTTP/1.1 999 Odd"), gets(999),
            gets(500, 502), section="9110 15", level="safety", strict=False),
        Case("heads/no-reason", "9112 4", "a status line may end behind its status and a space", (get(),), passes,
            upstream=(Reply.of(_line(b"HTTP/1.1 200 ")),)),
        either_way("no-reason-no-space", "a status line without the space is 502, or read", _line(b"HTTP/1.1 200"),
            passes, level="safety", strict=False),
        either_way("two-spaces", "two spaces are 502, or read as one", _line(b"HTTP/1.1  200 OK"), passes,
            level="safety", strict=False),
        either_way("tab", "a tab is 502, or read as a space", _line(b"HTTP/1.1\t200\tOK"), passes, level="safety",
            strict=False),
        either_way("reason-cr", "a bare CR in the reason is 502, or goes no further", _line(b"HTTP/1.1 200 a\rb"),
            both(passes, no_cr)),
        either_way("reason-nul", "a NUL in the reason is 502, or goes no further", _line(b"HTTP/1.1 200 a\x00b"),
            both(passes, no_cr)),
        either_way("leading-empty-line", "an empty line before the status line is 502, or ignored",
            b"\r\n" + _line(b"HTTP/1.1 200 OK"), passes, level="safety", strict=False),
        Case("heads/long-reason", "9112 4", "a long reason passes, is cut, or is 502", (get(),),
            gets(200, 502, complete=False), upstream=(Reply.of(_line(b"HTTP/1.1 200 " + b"r" * 5000)),),
            level="safety"),
        Case("heads/pieces", "9112 4", "a head byte by byte is a head", (get(),), gets(200, body=b"hello"),
            upstream=(Reply.of(*(part for byte in response(b"Content-Length: 5",
            body=b"hello") for part in (bytes([byte]), Pause(0.0005)))),)),
        Case("heads/silence", "9110 15.6.5", "an upstream that says nothing is 504", (get(),), gets(504),
            upstream=(Reply.of(SILENCE),), sticky=True, lane="timeout", timeout=8.0, level="SHOULD"),
        Case("heads/half-and-silence", "9110 15.6.5", "half a head and no more is 504", (get(),), gets(504, 502),
            upstream=(Reply.of(b"HTTP/1.1 200 OK\r\nConte", SILENCE),), sticky=True, lane="timeout",
            timeout=8.0, level="SHOULD"),
        Case("heads/silence-1.0", "9110 15.6.5", "an upstream that says nothing is 504 to HTTP/1.0, too",
            (b"GET /x HTTP/1.0\r\nHost: localhost\r\n\r\n",), gets(504),
            upstream=(Reply.of(SILENCE),), sticky=True, lane="timeout", timeout=8.0, level="SHOULD"),
        Case("heads/unreachable", "9110 15.6.3", "an upstream that is not there is 502 or 503", (get(),),
            gets(502, 503, 504), lane="dead"),
        Case("heads/unreachable-head", "9110 9.3.2", "an error of ours to HEAD has no body",
            (b"HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n" + get(),),
            both(gets(502, 503, 504, body=b""),
            either(gets(502, 503, 504, number=1),
            that("must", "neither", lambda seen: seen.callers[0].ended != "open"))),
            lane="dead", finals={0: 2}, methods={0: ["HEAD", "GET"]}),
        Case("heads/unreachable-post", "9112 9.3", "the body of a request that nobody takes is no request",
            (post(SMUGGLED, b"Content-Length: %d" % len(SMUGGLED)),),
            both(gets(502, 503, 504), that("exploitable", "a body was answered", lambda seen: len(seen.finals()) == 1)),
            lane="dead"),
    ]
    return found

START = b"HTTP/1.1 200 OK\r\nX-Up: 1\r\nContent-Length: 5\r\n"


def _long(name, about, *steps, level="safety", house=None):
    return Case(f"limits/{name}", "9110 5.4", about, (get(),), either(gets(200, body=b"hello"), bad_gateway()),
        upstream=(Reply.of(*steps),), sticky=True, level=level, house=house)


def _endless(name, about, *steps):
    return Case(f"limits/{name}", "9110 5.4", about, (get(),), either(bad_gateway(statuses=(502, 504)), broken()),
        upstream=(Reply.of(*steps),), sticky=True, level="safety", exempt=(b"rest",))


def limits():
    return [
        _long("8-kib-field", "a field of 8 KiB passes", START + b"X-A: " + b"v" * 8000 + b"\r\n\r\nhello",
            level="SHOULD"),
        _long("60-fields", "60 fields pass",
            START + b"".join(b"X-%d: v\r\n" % number for number in range(60)) + b"\r\nhello", level="SHOULD"),
        _long("20-cookies", "20 cookies of 200 bytes pass",
            START + b"".join(b"Set-Cookie: c%d=%s\r\n" % (number, b"v" * 200) for number in range(20)) + b"\r\nhello",
            level="SHOULD"),
        _long("100-kib-field", "a field of 100 KiB passes, or is 502",
            START + b"X-A: " + b"v" * 102_400 + b"\r\n\r\nhello"),
        _long("2000-fields", "2000 fields pass, or are 502",
            START + b"".join(b"X-%d: v\r\n" % number for number in range(2000)) + b"\r\nhello"),
        _long("megabyte-head", "a head of 1 MiB passes, or is 502",
            START + (b"X-A: " + b"v" * 1000 + b"\r\n") * 1040 + b"\r\nhello"),
        _endless("endless-fields", "fields without end are 502", START, b"X-A: v\r\n" * 1_000_000, CLOSE),
        _endless("endless-field", "a field without end is 502", START + b"X-A: ", b"v" * 8_000_000, CLOSE),
        _endless("endless-status", "a status line without end is 502", b"HTTP/1.1 200 ", b"v" * 8_000_000, CLOSE),
        _endless("endless-interim", "interim responses without end are 502",
            b"HTTP/1.1 103 Early Hints\r\nX-A: v\r\n\r\n" * 200_000, CLOSE),
        _endless("endless-trailers", "trailers without end never look complete",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", b"X-A: v\r\n" * 1_000_000,
            CLOSE),
        _endless("endless-chunk-line", "a chunk line without end never looks complete",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;", b"v" * 8_000_000, CLOSE),
    ]


def cases():
    return [*status_lines(), *limits()]
