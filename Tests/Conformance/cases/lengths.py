# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""`Content-Length` of requests (RFC 9112 §6.2 and §6.3, RFC 9110 §8.6)."""

from case import AFTER, SMUGGLED, Case, HalfClose, Leave, Pause, request, post
from judge import Want, arrives, both, either, gets, nothing_complete, refused, that

SECTION = "9112 6.3"


def _invalid(name, about, *lines, body=b"hello", statuses=(400,), section=SECTION, level="MUST"):
    """An invalid length: 400, and what follows is not read."""
    return Case(
        f"lengths/{name}", section, about, (post(body + SMUGGLED + AFTER, *lines),), refused(*statuses), level=level,
        closes=1.0, finals={0: 2})


def _lenient(name, about, *lines, section=SECTION):
    """A length that may be refused, or read as 5."""
    return Case(
        f"lengths/{name}", section, about, (post(b"hello" + AFTER, *lines),),
        either(refused(), arrives(Want(body=b"hello", has=((b"content-length", b"5"),)), Want(b"/after"))),
        house=refused(), level="safety", finals={0: 2})


def _valid(name, about, *lines, body=b"hello", level="MUST"):
    return Case(
        f"lengths/{name}", "9112 6.2", about, (post(body + AFTER, *lines),), arrives(Want(body=body), Want(b"/after")),
        level=level, finals={0: 2})


def _body_of(method):
    """A body where few expect one is a body all the same, never a request."""
    return Case(
        f"lengths/{method.decode().lower()}-with-body", "9110 9.3",
        f"content of a {method.decode()} is content, not the next request",
        (request(method + b" /x", b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED + AFTER),),
        either(both(gets(400, 413, 411, 405, 501),
        that("exploitable", "the content was taken for a request", only_after)),
               arrives(Want(body=SMUGGLED, method=method), Want(b"/after"))),
        level="safety", finals={0: 2}, methods={0: [method.decode()]})


def only_after(seen):
    return all(each.target == b"/after" for each in seen.requests) and len(seen.finals()) <= 2


INVALID = [
    ("plus", b"+5"), ("minus", b"-5"), ("minus-zero", b"-0"), ("hex", b"0x5"), ("hex-letter", b"a"), ("suffix", b"5x"),
    ("two-numbers", b"5 5"), ("semicolon", b"5;"), ("decimal", b"5.0"), ("exponent", b"5e0"), ("quoted", b'"5"'),
    ("underscore-digits", b"0_5"), ("vertical-tab", b"\x0b5"), ("form-feed", b"5\x0c"), ("no-break-space", b"5\xa0"),
    ("arabic-digit", b"\xd9\xa5"), ("fullwidth-digit", b"\xef\xbc\x95"), ("nul", b"5\x00"), ("list-differing", b"5, 6"),
    ("list-with-word", b"5, x"), ("list-with-sign", b"5, +5"), ("list-semicolon", b"5;5"), ("chunked", b"chunked"),
    ("comma-only", b","), ("bare-cr", b"5\r6"),
]


def cases():
    found = [_invalid(name, f"Content-Length {value!r} is refused", b"Content-Length: " + value) for name,
        value in INVALID]
    found += [
        _invalid("empty", "an empty Content-Length is refused", b"Content-Length:"),
        _invalid("overflow-64", "2^64+5 is not 5", b"Content-Length: 18446744073709551621", statuses=(400, 413),
            section="9110 8.6"),
        _invalid("overflow-20-digits", "a length no integer holds is refused", b"Content-Length: 99999999999999999999",
                 statuses=(400, 413), section="9110 8.6"),
        _invalid("overflow-1000-digits", "a length of 1000 digits is refused", b"Content-Length: " + b"9" * 1000,
                 statuses=(400, 413, 431), section="9110 8.6"),
        _invalid("differing", "two differing lengths are refused", b"Content-Length: 5", b"Content-Length: 6"),
        _invalid("differing-reverse", "two differing lengths are refused", b"Content-Length: 6", b"Content-Length: 5"),
        _invalid("differing-zero", "two differing lengths are refused, 0 too", b"Content-Length: 0",
            b"Content-Length: 5"),
        _invalid("differing-zero-last", "two differing lengths are refused, 0 too", b"Content-Length: 5",
            b"Content-Length: 0"),
        _invalid("differing-apart", "fields between them do not hide the second length", b"Content-Length: 5",
            b"X-A: b", b"X-C: d", b"content-length: 42"),
        _invalid("second-empty", "an empty second length is refused", b"Content-Length: 5", b"Content-Length:"),
        _invalid("second-invalid", "an invalid second length is refused", b"Content-Length: 5", b"Content-Length: x"),
        _invalid("three", "of three lengths one differs", b"Content-Length: 5", b"Content-Length: 5",
            b"Content-Length: 7"),
        _invalid("folded", "a folded length is 5 5, which is no length", b"Content-Length: 5", b" 5"),
        _invalid("space-before-colon", "white space before the colon is refused", b"Content-Length : 5",
            section="9112 5.1"),
        _invalid("tab-before-colon", "white space before the colon is refused", b"Content-Length\t: 5",
            section="9112 5.1"),
        _lenient("twice", "the same length twice is one, or refused", b"Content-Length: 5", b"Content-Length: 5",
            section="9110 8.6"),
        _lenient("list-same", "a list of the same length is one, or refused", b"Content-Length: 5, 5",
            section="9110 8.6"),
        _lenient("list-empty-member", "an empty member is ignored, or refused", b"Content-Length: 5,",
            section="9110 5.6.1.2"),
        _lenient("list-empty-first", "an empty member is ignored, or refused", b"Content-Length: ,5",
            section="9110 5.6.1.2"),
        _lenient("twice-zeros", "5 and 05 are one length, or refused", b"Content-Length: 5", b"Content-Length: 05"),
        Case("lengths/folded-empty", "9112 5.2", "a length on a folded line is refused or read, never ignored",
            (post(b"hello" + AFTER, b"Content-Length:", b" 5"),),
            either(refused(), arrives(Want(body=b"hello"), Want(b"/after"))), house=refused(), finals={0: 2}),
        Case("lengths/leading-zeros", "9112 6.2", "leading zeros are digits",
            (post(b"hello" + AFTER, b"Content-Length: 0005"),),
            either(refused(), arrives(Want(body=b"hello"), Want(b"/after"))), level="safety", finals={0: 2}),
        _valid("plain", "a body of 5 is a body of 5", b"Content-Length: 5"),
        _valid("no-space", "no space is needed", b"Content-Length:5"),
        _valid("tabs", "tabs around the value are optional white space", b"Content-Length:\t 5\t "),
        _valid("case", "field names compare in any case", b"cOnTEnt-LeNgTH: 5"),
        _valid("zero", "a length of 0 is no body", b"Content-Length: 0", body=b""),
        _valid("absent", "without a length there is no body", body=b""),
        _valid("request-inside", "a request in a body is a body", b"Content-Length: %d" % len(SMUGGLED), body=SMUGGLED),
        _valid("binary", "a body may be any bytes", b"Content-Length: 256", body=bytes(range(256))),
        _valid("crlf-body", "a body of line ends is not skipped", b"Content-Length: 8", body=b"\r\n\r\n\r\n\r\n"),
        _valid("megabyte", "a long body arrives whole", b"Content-Length: 1048576", body=b"0123456789abcdef" * 65536),
        Case("lengths/underscore", "9112 6.3", "Content_Length is another field, and gives no length",
            (post(b"", b"Content_Length: 44") + AFTER,), either(refused(), arrives(Want(body=b""), Want(b"/after"))),
            level="safety", finals={0: 2}),
        Case("lengths/32-bit", "9110 8.6", "2^32+5 is not 5",
            (post(b"hello" + SMUGGLED, b"Content-Length: 4294967301"), Pause(0.1)), nothing_complete(), finals={},
            closes=0.0),
        Case("lengths/63-bit", "9110 8.6", "2^63 is no negative number, and 2^63+5 not 5",
            (post(b"hello" + SMUGGLED, b"Content-Length: 9223372036854775813"), Pause(0.1)),
            both(nothing_complete(), that("exploitable", "more than one answer", lambda seen: len(seen.finals()) < 2)),
            finals={}),
        Case("lengths/truncated", "9112 8", "a body cut short by a half-close is not complete upstream",
            (post(b"hello", b"Content-Length: 10"), Pause(0.05), HalfClose()), nothing_complete(), finals={},
            closes=2.0),
        Case("lengths/abandoned", "9112 8", "a body cut short by a close is not complete upstream",
            (post(b"hello", b"Content-Length: 10"), Pause(0.05), Leave(), Pause(0.1)), nothing_complete(), finals={}),
        Case("lengths/abandoned-reset", "9112 8", "a body cut short by a reset is not complete upstream",
            (post(b"hello", b"Content-Length: 10"), Pause(0.05), Leave(reset=True), Pause(0.1)), nothing_complete(),
            finals={}),
    ]
    return found + [_body_of(method) for method in (b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"PUT", b"PATCH",
        b"PROPFIND")]
