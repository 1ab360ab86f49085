# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Chunked bodies of requests (RFC 9112 §7.1): sizes, extensions, ends of lines, and bodies that stop."""

from case import AFTER, SMUGGLED, Case, HalfClose, Leave, Pause, Trickle, chunked, post
from judge import Want, arrives, both, either, nothing_complete, refused

TE = b"Transfer-Encoding: chunked"


def _refused(name, about, body, statuses=(400,), level="MUST"):
    """A malformed chunk: the request is never complete upstream, and what follows it is not read."""
    return Case(
        f"chunks/{name}", "9112 7.1", about, (chunked(body + AFTER),), refused(*statuses, silent=True), level=level,
        closes=1.5,
        finals={0: 2})


def _valid(name, about, body, data=b"hello", section="9112 7.1"):
    return Case(
        f"chunks/{name}", section, about, (chunked(body + AFTER),), arrives(Want(body=data), Want(b"/after")),
        finals={0: 2})


def _lenient(name, about, body, data=b"hello", house=None):
    return Case(
        f"chunks/{name}", "9112 7.1", about, (chunked(body + AFTER),),
        either(refused(400, 413, 431, silent=True), arrives(Want(body=data), Want(b"/after"))), level="safety",
        house=house, finals={0: 2})


# A chunk that another reader of the size would end elsewhere, with a request hidden there.
TAIL = b"\r\n0\r\n\r\n"
SIZES = [
    ("size-empty", b""), ("size-minus", b"-5"), ("size-plus", b"+5"), ("size-0x", b"0x5"),
        ("size-leading-space", b" 5"),
    ("size-leading-tab", b"\t5"), ("size-word", b"5g"), ("size-letter", b"g"), ("size-underscore", b"0_5"),
        ("size-dot", b"5.0"),
    ("size-comma", b"5,5"), ("size-two", b"5 5"), ("size-nul", b"5\x00"), ("size-vertical-tab", b"5\x0b"),
        ("size-form-feed", b"\x0c5"),
    ("size-no-break-space", b"5\xa0"), ("size-quote", b'"5"'), ("size-fullwidth", b"\xef\xbc\x95"), ("size-h", b"5h"),
        ("size-minus-zero", b"-0"),
    ("size-overflow-64", b"10000000000000005"), ("size-overflow-long", b"f" * 33),
        ("size-overflow-128", b"100000000000000000000000000000005"),
]


def cases():
    found = [_refused(name, f"a chunk size {size!r} is refused", size + b"\r\nhello" + TAIL,
        statuses=(400, 413)) for name, size in SIZES]
    found += [
        _valid("plain", "one chunk", b"5\r\nhello\r\n0\r\n\r\n"),
        _valid("several", "several chunks", b"1\r\nh\r\n3\r\nell\r\n1\r\no\r\n0\r\n\r\n"),
        _valid("empty", "no chunk but the last", b"0\r\n\r\n", b""),
        _valid("hex-upper", "hexadecimal in capitals", b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        _valid("hex-lower", "hexadecimal in small letters", b"a\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        _valid("hex-not-decimal", "10 is sixteen", b"10\r\n0123456789abcdef\r\n0\r\n\r\n", b"0123456789abcdef"),
        _valid("zeros", "leading zeros are digits", b"0005\r\nhello\r\n0\r\n\r\n"),
        _valid("zeros-last", "the last chunk may be 000", b"5\r\nhello\r\n000\r\n\r\n"),
        _valid("binary", "data may be any bytes", b"100\r\n" + bytes(range(256)) + b"\r\n0\r\n\r\n", bytes(range(256))),
        _valid("request-inside", "a request in a chunk is data",
            b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n0\r\n\r\n", SMUGGLED),
        _valid("end-inside", "what looks like the end is data within a chunk", b"c\r\n\r\n0\r\n\r\nGET /\r\n0\r\n\r\n",
            b"\r\n0\r\n\r\nGET /"),
        _valid("megabyte", "a chunk of 1 MiB", b"100000\r\n" + b"x" * 1048576 + b"\r\n0\r\n\r\n", b"x" * 1048576),
        _valid("thousand", "a thousand chunks of one byte", b"1\r\nx\r\n" * 1000 + b"0\r\n\r\n", b"x" * 1000),
        _valid("extension", "an extension is ignored", b"5;a=b\r\nhello\r\n0\r\n\r\n", section="9112 7.1.1"),
        _valid("extension-flag", "an extension without a value is ignored", b"5;a\r\nhello\r\n0;b\r\n\r\n",
            section="9112 7.1.1"),
        _valid("extension-quoted", "a quoted value is ignored", b'5;a="b;c=\\"d\\""\r\nhello\r\n0\r\n\r\n',
            section="9112 7.1.1"),
        _valid("extension-several", "several extensions are ignored", b"5;a=b;c;d=e\r\nhello\r\n0;x=y\r\n\r\n",
            section="9112 7.1.1"),
        _lenient("extension-white-space", "bad white space around an extension is ignored, or refused",
            b"5 ; a = b\r\nhello\r\n0\r\n\r\n"),
        _lenient("size-trailing-space", "a space behind the size is ignored, or refused", b"5 \r\nhello\r\n0\r\n\r\n"),
        _lenient("size-zeros-1000", "a thousand zeros are read, or refused", b"0" * 1000 + b"5\r\nhello\r\n0\r\n\r\n"),
        _lenient("extension-nameless", "an extension without a name is ignored, or refused",
            b"5;\r\nhello\r\n0\r\n\r\n"),
        _lenient("extension-no-name-value", "an extension of only a value is ignored, or refused",
            b"5;=b\r\nhello\r\n0\r\n\r\n"),
        _lenient("extension-open-quote", "an open quotation ends with its line, or is refused",
            b'5;a="\r\nhello\r\n0\r\n\r\n'),
        _lenient("extension-8k", "a long extension is ignored, or refused",
            b"5;a=" + b"b" * 8000 + b"\r\nhello\r\n0\r\n\r\n"),
        _lenient("extension-1m", "an extension of 1 MiB is ignored, or refused",
            b"5;a=" + b"b" * 1048576 + b"\r\nhello\r\n0\r\n\r\n",
                 house=refused(400, 413, 431, silent=True)),
        _lenient("extension-each", "200 extensions of 1 KiB are ignored, or refused",
            (b"1;" + b"e" * 1024 + b"\r\nx\r\n") * 200 + b"0\r\n\r\n", b"x" * 200),
        _refused("size-line-lf", "a bare LF does not end a chunk line", b"5\nhello\r\n0\r\n\r\n"),
        _refused("size-line-cr", "a bare CR does not end a chunk line", b"5\rhello\r\n0\r\n\r\n"),
        _refused("size-line-cr-cr-lf", "CR CR LF does not end a chunk line", b"5\r\r\nhello\r\n0\r\n\r\n"),
        _refused("size-line-lf-cr", "LF CR does not end a chunk line", b"5\n\rhello\r\n0\r\n\r\n"),
        _refused("extension-lf", "a bare LF in an extension neither ends the line nor belongs to it",
                 b"5;a\nx" + b"\r\nhello\r\n0\r\n\r\n"),
        # One reader sees a chunk of 2 (`xx`), one of 0x2d that holds the end and a request; another sees that request.
        _refused("extension-lf-hides", "a bare LF in an extension hides no chunk",
                 b"2;\nxx\r\n%x\r\n0\r\n\r\n" % (len(SMUGGLED) + 5) + SMUGGLED + TAIL),
        _refused("extension-cr", "a bare CR in an extension is refused", b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
        _refused("extension-cr-hides", "a bare CR in an extension ends no line", b"5;a\rhello\r\n0\r\n\r\n"),
        _refused("extension-nul", "a NUL in an extension is refused", b"5;a=\x00\r\nhello\r\n0\r\n\r\n",
            level="safety"),
        _refused("extension-control", "a control in an extension is refused", b"5;a=\x01b\r\nhello\r\n0\r\n\r\n",
            level="safety"),
        _refused("data-longer", "more data than the size says is refused", b"5\r\nhelloXX\r\n0\r\n\r\n"),
        _refused("data-longer-hides", "data behind the size is no chunk line", b"5\r\nhello0\r\n\r\n" + SMUGGLED),
        _refused("data-shorter", "less data than the size says is refused", b"5\r\nhel\r\n0\r\n\r\n"),
        _refused("data-no-end", "no line end behind the data is refused", b"5\r\nhello5\r\nhello\r\n0\r\n\r\n"),
        _refused("data-lf", "a bare LF behind the data is refused", b"5\r\nhello\n0\r\n\r\n"),
        _refused("data-cr", "a bare CR behind the data is refused", b"5\r\nhello\r0\r\n\r\n"),
        _refused("data-cr-cr-lf", "CR CR LF behind the data is refused", b"5\r\nhello\r\r\n0\r\n\r\n"),
        _refused("data-lf-lf", "two LF behind the data are refused", b"5\r\nhello\n\n0\r\n\r\n"),
        # A reader that skips any two bytes after the data reads another body.
        _refused("data-any-two", "any two bytes behind the data are not a line end",
            b"5\r\nhelloab0\r\n\r\n" + SMUGGLED),
        _refused("data-extra-crlf", "an empty line between chunks is refused", b"5\r\nhello\r\n\r\n0\r\n\r\n"),
        _refused("last-lf", "a bare LF does not end the last chunk's line", b"5\r\nhello\r\n0\n\r\n"),
        _refused("end-lf", "a bare LF does not end the body", b"5\r\nhello\r\n0\r\n\n"),
        _refused("all-lf", "a body of bare LF is refused", b"5\nhello\n0\n\n"),
        _refused("end-cr-word", "CR and a letter do not end the body", b"5\r\nhello\r\n0\r\n\rX"),
        _refused("end-nothing", "a request line is no trailer", b"5\r\nhello\r\n0\r\n" + SMUGGLED),
        _refused("last-space-first", "white space before the last size is refused", b"5\r\nhello\r\n 0\r\n\r\n"),
    ]
    found += [_stops(*each) for each in (
        ("stops-in-data", b"5\r\nhel"), ("stops-before-last", b"5\r\nhello\r\n"), ("stops-in-last", b"5\r\nhello\r\n0"),
        ("stops-before-end", b"5\r\nhello\r\n0\r\n"), ("stops-in-end", b"5\r\nhello\r\n0\r\n\r"),
        ("stops-in-size", b"5"), ("stops-at-once", b""))]
    found += [
        Case("chunks/leaves-in-data", "9112 8", "a chunked body that its caller abandons is not complete upstream",
            (chunked(b"5\r\nhello\r\n"), Pause(0.05), Leave(), Pause(0.1)), nothing_complete(), finals={}),
        Case("chunks/byte-by-byte", "9112 7.1", "a chunked body may come byte by byte",
            (post(b"", TE), Trickle(b'5;a="b"\r\nhello\r\n0a\r\n0123456789\r\n0\r\n\r\n' + AFTER)),
            arrives(Want(body=b"hello0123456789"), Want(b"/after")), finals={0: 2}),
        Case("chunks/never-all", "9112 7.1", "a size of 2^32+5 is not 5",
            (chunked(b"100000005\r\nhello\r\n0\r\n\r\n" + SMUGGLED), Pause(0.1)), nothing_complete(), finals={}),
        Case("chunks/size-63-bit", "9112 7.1", "2^63+5 and 2^64-1 are not small",
            (chunked(b"8000000000000005\r\nhello\r\n0\r\n\r\n" + SMUGGLED), Pause(0.1)), nothing_complete(), finals={}),
        Case("chunks/size-all-ones", "9112 7.1", "2^64-1 is not -1",
            (chunked(b"ffffffffffffffff\r\nhello\r\n0\r\n\r\n" + SMUGGLED), Pause(0.1)), nothing_complete(), finals={}),
        Case("chunks/size-endless", "9112 7.1", "a chunk line without end is not kept in memory",
            (chunked(b"0" * 2_000_000),), both(refused(400, 413, 431, silent=True), nothing_complete()), level="safety",
            closes=2.0, finals={0: 1},
            contract=True),
    ]
    return found


def _stops(name, body):
    return Case(
        f"chunks/{name}", "9112 8", "a chunked body that stops is not complete upstream",
        (chunked(body), Pause(0.04), HalfClose()), nothing_complete(), finals={}, closes=2.0)
