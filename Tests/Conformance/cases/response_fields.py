# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Field lines of responses (RFC 9112 §5, RFC 9110 §5.5): nothing splits one response into two."""

import re

from case import CLOSE, Case, Pause, Reply, get
from judge import both, gets, that

from .response_heads import FINE, either_way


def _field(line):
    return b"HTTP/1.1 200 OK\r\nX-Up: 1\r\n" + line + b"\r\n" + FINE


def cases():
    passes = gets(200, body=b"hello")
    no_cr = that("exploitable", "a bare CR or NUL went through",
        lambda seen: b"a\rb" not in seen.callers[0].received and b"a\x00b" not in seen.callers[0].received)
    no_b = that("exploitable", "a field that was none went through",
        lambda seen: not any(each.fields.all(b"x-b") for each in seen.finals()))
    spaced = gets(200, body=b"hello", has=((b"x-a", b"b"),))
    return [
        either_way("bare-lf-all", "a head of bare LF is 502, or read",
            b"HTTP/1.1 200 OK\nX-Up: 1\nContent-Length: 5\n\nhello", passes, section="9112 2.2", strict=False),
        either_way("bare-lf", "a bare LF behind a field is 502, or ends the line", _field(b"X-A: a\nX-B: b"), passes,
            section="9112 2.2", strict=False),
        either_way("bare-cr", "a bare CR in a field is 502, or becomes a space", _field(b"X-A: a\rb"),
            both(passes, no_cr), section="9112 2.2"),
        either_way("bare-cr-field", "a bare CR begins no field", _field(b"X-A: a\rX-B: b"), both(passes, no_b),
            section="9112 2.2"),
        either_way("cr-cr-lf", "CR CR LF is 502, or a space at the end of the line", _field(b"X-A: b\r"), spaced,
            section="9112 2.2", level="safety", strict=False),
        either_way("cr-set-cookie", "a bare CR makes no cookie", _field(b"X-A: a\rSet-Cookie: evil=1"),
            both(passes, that(
            "exploitable", "a cookie was made", lambda seen: not seen.finals()[0].fields.all(b"set-cookie"))),
            section="9112 2.2"),
        either_way("nul", "a NUL in a field is 502, or becomes a space", _field(b"X-A: a\x00b"), both(passes, no_cr),
            section="9110 5.5"),
        either_way("control", "a control in a field is 502, or kept out of harm", _field(b"X-A: a\x01b"), passes,
            section="9110 5.5", level="safety", strict=False),
        either_way("folded", "a folded field is 502, or becomes a space", _field(b"X-A: a\r\n b"), both(passes, that(
            "must", "the fold is not one or more spaces",
            lambda seen: re.fullmatch(b"a +b", seen.finals()[0].fields.one(b"x-a") or b""))), section="9112 5.2",
            strict=False),
        either_way("folded-field", "a folded line is no field", _field(b"X-A: a\r\n X-B: b"), both(passes, no_b),
            section="9112 5.2", strict=False),
        either_way("folded-first", "white space behind the status line is 502, or ignored",
            b"HTTP/1.1 200 OK\r\n X-B: b\r\n" + FINE, both(passes, no_b), section="9112 2.2", strict=False),
        either_way("space-before-colon", "white space before a colon is 502, or goes no further", _field(b"X-A : b"),
            both(gets(200, body=b"hello"), that(
            "must", "the field was not kept", lambda seen: seen.finals()[0].fields.all(b"x-a") in ([b"b"], []))),
            section="9112 5.1", strict=False),
        either_way("space-before-colon-length", "a length with white space before its colon is 502, or counts",
            b"HTTP/1.1 200 OK\r\nX-Up: 1\r\nContent-Length : 5\r\n\r\nhelloPOISON",
                gets(200, body=b"hello"), section="9112 5.1", more=(Pause(0.05), CLOSE)),
        either_way("space-before-colon-coding", "a coding with white space before its colon is 502, or counts",
                b"HTTP/1.1 200 OK\r\nX-Up: 1\r\nTransfer-Encoding : chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                gets(200, body=b"hello"), section="9112 5.1", more=(Pause(0.05), CLOSE)),
        either_way("no-colon", "a line without a colon is 502, or goes no further", _field(b"X-A"), passes,
            section="9112 5", level="SHOULD", strict=False),
        either_way("nameless", "a field without a name is 502, or goes no further", _field(b": b"), passes,
            section="9112 5", level="SHOULD", strict=False),
        either_way("name-space", "a name with a space is 502, or goes no further", _field(b"X A: b"), passes,
            section="9112 5", level="SHOULD", strict=False),
        either_way("name-not-ascii", "a name that is not ASCII is 502, or goes no further", _field(b"X-\xc3\xa9: b"),
            passes, section="9112 5", level="SHOULD", strict=False),
        either_way("name-nul", "a name with a NUL is 502, or goes no further", _field(b"X\x00A: b"), passes,
            section="9112 5", level="SHOULD", strict=False),
        Case("heads/encoded-crlf", "safety", "an encoded line end in Location stays encoded", (get(),),
            gets(302, has=((b"location", b"/a%0d%0aSet-Cookie:%20evil=1"),)),
            upstream=(Reply.of(b"HTTP/1.1 302 Found\r\nX-Up: 1\r\nLocation: /a%0d%0aSet-Cookie:%20evil=1\r\n" + FINE),),
            level="safety"),
    ]
