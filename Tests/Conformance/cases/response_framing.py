# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The ends of responses (RFC 9112 §6.3), to callers of HTTP/1.1 and 1.0, and ambiguous framing."""

from case import AFTER, BODY, CLOSE, HOST, Case, Pause, Reply, get, ok, request, response
from judge import bad_gateway, both, either, ends, gets, that

OLD = b"GET /x HTTP/1.0\r\n" + HOST + b"\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
CHUNKS = b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
BOTH_FRAMINGS = that("must", "both framings went on",
    lambda seen: not (seen.finals()[0].fields.all(b"content-length") and seen.finals()[0].fields.all(b"transfer-encoding")))


def _whole(name, about, *steps, body=b"hello", head=None, kinds=("length", "chunked", "close"), rule=(), level="MUST",
    finals=2, statuses=(200,), methods=None):
    """The body arrives whole, and the connection is fit for another request, or ended."""
    again = either(gets(200, number=1, body=b"GET /after"),
        that("must", "neither a second answer nor the end",
        lambda seen: len(seen.finals()) == 1 and seen.callers[0].ended != "open"))
    return Case(f"framing/{name}", "9112 6.3", about, ((head or get()) + AFTER,),
        both(gets(*statuses, body=body, kind=kinds), again, *rule),
                upstream=(Reply.of(*steps),), level=level, finals={0: finals}, methods={0: methods or []})


def _old(name, about, *steps, body=b"hello"):
    return Case(f"framing/1.0-{name}", "9112 6.1", about, (OLD,), both(
        gets(200, body=body, kind=("length", "close"), lacks=(b"transfer-encoding",)), ends()),
        upstream=(Reply.of(*steps),))


def _invalid(name, about, head, *more, allow=None, body=b"hello", level="MUST", strict=True):
    """An error of framing: 502, and the upstream connection is not used again."""
    accept = bad_gateway()
    return Case(f"framing/{name}", "9112 6.3", about, (get(),), either(accept, allow) if allow else accept,
                upstream=(Reply.of(response(*head, body=body), *more),), sticky=True, level=level,
                house=accept if strict else None)


LENGTHS = [
    ("differing", (b"Content-Length: 5", b"Content-Length: 6")),
        ("differing-reverse", (b"Content-Length: 6", b"Content-Length: 5")),
            ("differing-list", (b"Content-Length: 5, 6",)),
    ("plus", (b"Content-Length: +5",)), ("minus", (b"Content-Length: -5",)), ("word", (b"Content-Length: five",)),
        ("empty", (b"Content-Length:",)), ("hex", (b"Content-Length: 0x5",)),
    ("suffix", (b"Content-Length: 5 bytes",)), ("decimal", (b"Content-Length: 5.0",)),
        ("two", (b"Content-Length: 5 5",)), ("overflow", (b"Content-Length: 18446744073709551621",)),
    ("overflow-digits", (b"Content-Length: 99999999999999999999999",)),
        ("zero-and-five", (b"Content-Length: 0", b"Content-Length: 5")),
]


def cases():
    same = both(gets(200, body=b"hello"), BOTH_FRAMINGS)
    found = [
        _whole("length", "a length", ok()),
        _whole("length-zero", "no bytes", ok(b""), body=b""),
        _whole("length-binary", "any bytes", ok(bytes(range(256))), body=bytes(range(256))),
        _whole("length-megabyte", "a long body", ok(b"m" * 1_048_576), body=b"m" * 1_048_576),
        _whole("chunked", "chunks", response(CHUNKED, body=CHUNKS)),
        _whole("chunked-empty", "no chunk", response(CHUNKED, body=b"0\r\n\r\n"), body=b""),
        _whole("chunked-case", "CHUNKED", response(b"TRANSFER-ENCODING: CHUNKED", body=CHUNKS)),
        _whole("chunked-extension", "chunk extensions are ignored",
            response(CHUNKED, body=b'5;a="b"\r\nhello\r\n0;c\r\n\r\n')),
        _whole("chunked-pieces", "chunks in pieces of any size", response(CHUNKED), b"2\r", b"\nh", b"e\r\n3\r\nll",
            b"o\r\n0", b"\r\n\r", b"\n"),
        _whole("chunked-megabyte", "a long chunk",
            response(CHUNKED, body=b"100000\r\n" + b"m" * 1_048_576 + b"\r\n0\r\n\r\n"), body=b"m" * 1_048_576),
        _whole("close", "a body that the end of the connection ends", response(body=b"hello"), CLOSE),
        _whole("close-empty", "no body, ended by the end of the connection", response(), CLOSE, body=b""),
        _whole("close-named", "a body that the end of the connection ends, as it says",
            response(b"Connection: close", body=b"hello"), CLOSE),
        _whole("close-late", "a body whose end comes later", response(body=b"he"), Pause(0.05), b"llo", Pause(0.05),
            CLOSE),
        _whole("upstream-1.0-length", "a response of HTTP/1.0 with a length goes on as ours",
            response(b"Content-Length: 5", body=b"hello", version=b"HTTP/1.0"), CLOSE),
        _whole("upstream-1.0-close", "a response of HTTP/1.0 without a length",
            response(body=b"hello", version=b"HTTP/1.0"), CLOSE),
        _whole("upstream-1.0-keep-alive", "a response of HTTP/1.0 that keeps its connection",
            response(b"Content-Length: 5", b"Connection: keep-alive", body=b"hello", version=b"HTTP/1.0")),
        Case("framing/upstream-1.2", "9110 2.5", "a response of HTTP/1.2 is read as 1.1, or refused", (get(),),
            either(bad_gateway(), gets(200, body=b"hello")),
            upstream=(Reply.of(response(b"Content-Length: 5", body=b"hello", version=b"HTTP/1.2")),), level="safety"),
        _whole("204", "204 has no body", response(status=b"204 No Content"), body=b"", kinds=("none",),
            statuses=(204,)),
        _whole("204-length-0", "204 loses its Content-Length", response(b"Content-Length: 0", status=b"204 No Content"),
            body=b"", kinds=("none",), statuses=(204,)),
        _whole("304", "304 has no body", response(b'ETag: "a"', status=b"304 Not Modified"), body=b"", kinds=("none",),
            statuses=(304,)),
        _whole("304-length", "304 tells a length and has no body",
            response(b"Content-Length: 500", status=b"304 Not Modified"), body=b"", kinds=("none",), statuses=(304,)),
        _whole("304-chunked", "304 has no chunks", response(CHUNKED, status=b"304 Not Modified"), body=b"",
            kinds=("none",), statuses=(304,)),
        _whole("205", "205 passes", response(b"Content-Length: 0", status=b"205 Reset Content"), body=b"",
            statuses=(205,)),
        _whole("head-length", "HEAD tells a length and has no body", response(b"Content-Length: 500"),
            head=request(b"HEAD /x"), body=b"", kinds=("none",), methods=["HEAD"],
               rule=(gets(200, has=((b"content-length", b"500"),), body=b""),)),
        _whole("head-chunked", "HEAD has no chunks", response(CHUNKED), head=request(b"HEAD /x"), body=b"",
            kinds=("none",), methods=["HEAD"]),
        _whole("head-nothing", "HEAD without framing ends at its head", response(), head=request(b"HEAD /x"), body=b"",
            kinds=("none",), methods=["HEAD"]),
        _whole("head-404", "HEAD of an error has no body", response(b"Content-Length: 9", status=b"404 Not Found"),
            head=request(b"HEAD /x"), body=b"", kinds=("none",), methods=["HEAD"], statuses=(404,)),
        Case("framing/head-chunked-1.0", "9112 6.3", "HEAD of HTTP/1.0 has no body", (OLD.replace(b"GET", b"HEAD"),),
            both(gets(200, body=b"", lacks=(b"transfer-encoding",)), ends()),
            upstream=(Reply.of(response(CHUNKED)),), methods={0: ["HEAD"]}),
        _old("length", "a length to HTTP/1.0", ok()),
        _old("chunked", "chunks are none to HTTP/1.0", response(CHUNKED, body=CHUNKS)),
        _old("close", "a body that the end ends to HTTP/1.0", response(body=b"hello"), CLOSE),
        Case("framing/1.0-keep-alive-chunked", "9112 9.3",
            "to HTTP/1.0 with keep-alive a body without length is ended by the end",
            (OLD.replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n"),),
            both(gets(200, body=b"hello", lacks=(b"transfer-encoding",)), either(gets(200, kind=("length",)), ends())),
            upstream=(Reply.of(response(CHUNKED, body=CHUNKS)),)),
        _invalid("both", "both framings are 502, or one of them goes on", (b"Content-Length: 5", CHUNKED), body=CHUNKS,
            allow=same),
        _invalid("both-reverse", "both framings are 502, or one of them goes on", (CHUNKED, b"Content-Length: 3"),
            body=CHUNKS, allow=same),
        _invalid("both-zero", "both framings are 502, or one of them goes on", (b"Content-Length: 0", CHUNKED),
            body=CHUNKS, allow=same),
        _invalid("length-twice", "the same length twice is 502, or one", (b"Content-Length: 5", b"Content-Length: 5"),
            allow=gets(200, body=b"hello"), strict=False),
        _invalid("length-list-same", "a list of the same length is 502, or one", (b"Content-Length: 5, 5",),
            allow=gets(200, body=b"hello"), strict=False),
        _invalid("coding-unknown", "a coding that nobody knows is 502, or ended by the end",
            (b"Transfer-Encoding: cow",), CLOSE,
                 allow=gets(502, 200, complete=False), level="safety"),
        _invalid("coding-gzip-alone", "a coding that is not chunked at the end is 502, or ended by the end",
            (b"Transfer-Encoding: gzip",), CLOSE, allow=gets(200, complete=False), level="safety"),
        _invalid("coding-chunked-twice", "chunked twice is 502", (CHUNKED, CHUNKED), body=CHUNKS,
            allow=both(gets(200, body=b"hello")), level="safety"),
        _invalid("coding-chunked-then-identity", "chunked that is not at the end is 502, or ended by the end",
            (b"Transfer-Encoding: chunked, identity",), CLOSE, body=CHUNKS,
                 allow=gets(200, complete=False), level="safety"),
        _invalid("coding-1.0", "a coding in HTTP/1.0 is 502, or read and the connection ended", (CHUNKED,), body=CHUNKS,
            allow=gets(200, body=b"hello"), level="safety", strict=False),
        Case("framing/streams", "9112 7.1", "each part arrives when it is there", (get(),), gets(200, body=b"onetwo"),
            upstream=(Reply((BODY, response(CHUNKED, body=b"3\r\none\r\n"), Pause(0.1), b"3\r\ntwo\r\n0\r\n\r\n")),)),
        _length_204(),
    ]
    return found + [_invalid(f"length-{name}", f"{b', '.join(lines)!r} is 502", lines) for name, lines in LENGTHS]


def _length_204():
    """The five bytes are not a body (RFC 9112 §6.3 rule 1): they do not begin another response either."""
    return Case("framing/204-with-body", "9112 6.3", "what a 204 says is its body is none", (get() + AFTER,),
                either(bad_gateway(), both(gets(204, body=b""),
                that("exploitable", "its bytes were delivered",
                lambda seen: b"hello" not in seen.callers[0].received))),
                upstream=(Reply.of(response(b"Content-Length: 5", body=b"hello", status=b"204 No Content")),),
                finals={0: 2})
