# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Heads of responses without an end (RFC 9110 §5.4): limited, and no hang."""

from case import CLOSE, Case, Reply, get
from judge import bad_gateway, broken, either, gets

START = b"HTTP/1.1 200 OK\r\nX-Up: 1\r\nContent-Length: 5\r\n"


def _any(name, about, *steps, level="safety", house=None):
    return Case(f"limits/{name}", "9110 5.4", about, (get(),), either(gets(200, body=b"hello"), bad_gateway()),
        upstream=(Reply.of(*steps),), sticky=True, level=level, house=house)


def _bad(name, about, *steps):
    return Case(f"limits/{name}", "9110 5.4", about, (get(),), either(bad_gateway(statuses=(502, 504)), broken()),
        upstream=(Reply.of(*steps),), sticky=True, level="safety", exempt=(b"rest",))


def cases():
    return [
        _any("8-kib-field", "a field of 8 KiB passes", START + b"X-A: " + b"v" * 8000 + b"\r\n\r\nhello",
            level="SHOULD"),
        _any("60-fields", "60 fields pass",
            START + b"".join(b"X-%d: v\r\n" % number for number in range(60)) + b"\r\nhello", level="SHOULD"),
        _any("20-cookies", "20 cookies of 200 bytes pass",
            START + b"".join(b"Set-Cookie: c%d=%s\r\n" % (number, b"v" * 200) for number in range(20)) + b"\r\nhello",
            level="SHOULD"),
        _any("100-kib-field", "a field of 100 KiB passes, or is 502",
            START + b"X-A: " + b"v" * 102_400 + b"\r\n\r\nhello"),
        _any("2000-fields", "2000 fields pass, or are 502",
            START + b"".join(b"X-%d: v\r\n" % number for number in range(2000)) + b"\r\nhello"),
        _any("megabyte-head", "a head of 1 MiB passes, or is 502",
            START + (b"X-A: " + b"v" * 1000 + b"\r\n") * 1040 + b"\r\nhello"),
        _bad("endless-fields", "fields without end are 502", START, b"X-A: v\r\n" * 1_000_000, CLOSE),
        _bad("endless-field", "a field without end is 502", START + b"X-A: ", b"v" * 8_000_000, CLOSE),
        _bad("endless-status", "a status line without end is 502", b"HTTP/1.1 200 ", b"v" * 8_000_000, CLOSE),
        _bad("endless-interim", "interim responses without end are 502",
            b"HTTP/1.1 103 Early Hints\r\nX-A: v\r\n\r\n" * 200_000, CLOSE),
        _bad("endless-trailers", "trailers without end never look complete",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", b"X-A: v\r\n" * 1_000_000,
            CLOSE),
        _bad("endless-chunk-line", "a chunk line without end never looks complete",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;", b"v" * 8_000_000, CLOSE),
    ]
