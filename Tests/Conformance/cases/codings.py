# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""`Transfer-Encoding` of requests (RFC 9112 §6.1 and §6.3), alone and beside `Content-Length`."""

from case import AFTER, HOST, SMUGGLED, Case, post, request
from judge import Want, arrives, both, either, gets, refused, that

from .lengths import only_after

HELLO = b"5\r\nhello\r\n0\r\n\r\n"
# Read as chunked, the body ends before the hidden request; read with the length, it holds it, or the other way round.
HIDDEN = b"0\r\n\r\n" + SMUGGLED


def _refused(name, about, *lines, body=HELLO, statuses=(400, 422, 501), section="9112 6.3", level="MUST", house=None,
    exempt=()):
    return Case(
        f"codings/{name}", section, about, (post(body + AFTER, *lines),), refused(*statuses), house=house, level=level,
        closes=1.0, finals={0: 2}, exempt=exempt)


def _with_length(name, about, *lines, body=HELLO):
    """Both framings: refused, or read as chunked; the connection ends either way."""
    return Case(
        f"codings/{name}", "9112 6.1", about, (post(body + AFTER, *lines),),
        either(refused(400, 422, 501), arrives(Want(body=b"hello" if body is HELLO else b""), closes=True)),
        house=refused(),
        closes=1.0, finals={0: 2})


def _unknown(name, about, coding, level="MUST"):
    """If the last coding is not chunked, there is no length: 400. An unknown coding may be 501."""
    return _refused(name, about, b"Transfer-Encoding: " + coding, body=HIDDEN, level=level)


UNKNOWN = [
    ("identity", b"identity"), ("gzip-alone", b"gzip"), ("xchunked", b"xchunked"), ("chunkedx", b"chunkedx"),
        ("chunk", b"chunk"),
    ("quoted", b'"chunked"'), ("single-quoted", b"'chunked'"), ("chunked-then-identity", b"chunked, identity"),
    ("chunked-then-gzip", b"chunked, gzip"), ("chunked-semicolon-word", b"chunked; chunked"),
        ("space-inside", b"chun ked"),
    ("word-after", b"chunked x"), ("colon-first", b": chunked"), ("vertical-tab-first", b"\x0bchunked"),
        ("form-feed-last", b"chunked\x0c"),
    ("nul-last", b"chunked\x00"), ("nul-first", b"\x00chunked"), ("delete-last", b"chunked\x7f"),
        ("no-break-space", b"\xa0chunked"),
    ("bare-cr-last", b"chunked\r\x20"), ("bracketed", b"[chunked]"), ("long-s", "chunked\u017f".encode()),
        ("kelvin", "chun\u212aed".encode()),
    ("dotless", b"chunked\xc4\xb1"), ("unknown-then-chunked", b"x-unknown, chunked"),
        ("chunked-twice", b"chunked, chunked"),
    ("identity-then-chunked", b"identity, chunked"), ("parameter-q", b"chunked;q=1"),
        ("cow-chunked", b"cow, chunked, pig"),
    ("encoded", b"%63hunked"), ("escape", b"ch\\unked"),
]

BOTH = [
    ("both-length-first", b"Content-Length: 5", b"Transfer-Encoding: chunked"),
    ("both-length-last", b"Transfer-Encoding: chunked", b"Content-Length: 5"),
    ("both-zero", b"Content-Length: 0", b"Transfer-Encoding: chunked"),
    ("both-matching", b"Content-Length: 15", b"Transfer-Encoding: chunked"),
    ("both-lower-case", b"content-length: 5", b"transfer-encoding: chunked"),
    ("both-cased-value", b"Content-Length: 5", b"Transfer-Encoding: cHuNkEd"),
    ("both-apart", b"Content-Length: 5", b"X-A: b", b"X-C: d", b"Transfer-Encoding: chunked"),
    ("both-same-twice", b"Content-Length: 5", b"Content-Length: 5", b"Transfer-Encoding: chunked"),
    ("both-invalid-length", b"Content-Length: x", b"Transfer-Encoding: chunked"),
    ("both-empty-length", b"Content-Length:", b"Transfer-Encoding: chunked"),
    ("both-differing-lengths", b"Content-Length: 5", b"Content-Length: 6", b"Transfer-Encoding: chunked"),
    ("both-tab", b"Content-Length: 5", b"Transfer-Encoding:\tchunked"),
]


def cases():
    found = [_with_length(name, "both framings are refused, or chunked wins and the connection ends", *lines) for name,
        *lines in BOTH]
    found += [
        _with_length("both-hidden-by-chunked", "a request behind the chunked end is not read",
                     b"Content-Length: %d" % len(HIDDEN), b"Transfer-Encoding: chunked", body=HIDDEN),
        _refused("both-unknown", "a length beside an unknown coding is no way out", b"Content-Length: 5",
            b"Transfer-Encoding: xchunked", body=HIDDEN),
        _refused("both-identity", "a length beside identity is no way out", b"Content-Length: 5",
            b"Transfer-Encoding: identity", body=HIDDEN),
        _refused("both-empty", "a length beside an empty coding is no way out", b"Content-Length: 5",
            b"Transfer-Encoding:", body=HIDDEN),
        _refused("both-space-before-colon", "white space before the colon is refused, whatever it hides",
                 b"Content-Length: 5", b"Transfer-Encoding : chunked", body=HIDDEN, section="9112 5.1",
                 statuses=(400,)),
        _refused("both-length-space-before-colon", "white space before the colon is refused, whatever it hides",
                 b"Content-Length : 5", b"Transfer-Encoding: chunked", body=HIDDEN, section="9112 5.1",
                 statuses=(400,)),
        _refused("both-nul-in-name", "a name with a NUL is no name", b"Content-Length: 5",
            b"Transfer-Encoding\x00: chunked",
                 body=HIDDEN, section="9112 2.2", level="SHOULD", statuses=(400,), exempt=(b"smuggled",)),
        _refused("both-name-with-control", "a name with a control is no name", b"Content-Length: 5",
            b"Transfer-Encoding\x01: chunked",
                 body=HIDDEN, section="9112 2.2", level="SHOULD", statuses=(400,), exempt=(b"smuggled",)),
        _refused("both-name-no-break-space", "a name with 0xA0 is no name", b"Content-Length: 5",
            b"Transfer-Encoding\xa0: chunked",
                 body=HIDDEN, section="9112 2.2", level="SHOULD", statuses=(400,), exempt=(b"smuggled",)),
        Case("codings/both-folded-apart", "9112 5.2",
            "a coding on a line of its own that is folded is no field of its own",
            (post(b"hello" + AFTER, b"Content-Length: 5", b"X-A: b", b" Transfer-Encoding: chunked"),),
            either(refused(), arrives(Want(body=b"hello", lacks=(b"transfer-encoding",)), Want(b"/after"))),
            house=refused(), finals={0: 2}),
        Case("codings/leading-space", "9112 2.2",
            "a line that begins with white space after the request line is refused or ignored",
            (b"POST /x HTTP/1.1\r\n Transfer-Encoding: chunked\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello" + AFTER,
            ),
            either(refused(), arrives(Want(body=b"hello"), Want(b"/after"))), house=refused(), finals={0: 2}),
        Case("codings/behind-bare-cr", "9112 2.2", "a bare CR begins no field line",
            (post(b"hello" + AFTER, b"Content-Length: 5", b"X-A: b\rTransfer-Encoding: chunked"),),
            either(refused(), arrives(Want(body=b"hello", lacks=(b"transfer-encoding",)), Want(b"/after"))),
            house=refused(), finals={0: 2}),
        Case("codings/behind-bare-lf", "9112 2.2", "behind a bare LF a coding is refused, or taken for what it is",
            (post(HELLO + AFTER, b"X-A: b\nTransfer-Encoding: chunked"),),
            either(refused(), arrives(Want(body=b"hello"), Want(b"/after"))), house=refused(), finals={0: 2}),
        Case("codings/folded-value", "9112 5.2", "a folded coding is refused, or taken for what it is",
            (post(HELLO + AFTER, b"Transfer-Encoding:", b" chunked"),),
            either(refused(400, 422, 501), arrives(Want(body=b"hello"), Want(b"/after"))), house=refused(),
            finals={0: 2}),
        Case("codings/underscore", "9112 6.3", "Transfer_Encoding is another field",
            (post(b"hello" + AFTER, b"Content-Length: 5", b"Transfer_Encoding: chunked"),),
            either(refused(), arrives(Want(body=b"hello"), Want(b"/after"))), level="safety", finals={0: 2}),
        _refused("empty", "a coding that is empty is not chunked", b"Transfer-Encoding:", body=HIDDEN),
        _refused("two-lines", "chunked twice is refused", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
        _refused("two-lines-identity-first", "identity on a line of its own is unknown", b"Transfer-Encoding: identity",
            b"Transfer-Encoding: chunked"),
        _refused("two-lines-identity-last", "identity at the end gives no length", b"Transfer-Encoding: chunked",
            b"Transfer-Encoding: identity", body=HIDDEN),
        _refused("two-lines-unknown", "an unknown coding at the end gives no length", b"Transfer-Encoding: chunked",
            b"Transfer-encoding: cow", body=HIDDEN),
        Case("codings/gzip-chunked", "9112 6.1", "gzip below chunked is refused, or stays what it is",
            (post(HELLO + AFTER, b"Transfer-Encoding: gzip, chunked"),),
            either(refused(400, 422, 501), arrives(Want(body=b"hello", has=((b"transfer-encoding", b"gzip, chunked"),)),
            Want(b"/after"))),
            level="safety", finals={0: 2}),
    ]
    for name, value in (("list-empty-last", b"chunked,"), ("list-empty-first", b", chunked"),
        ("list-empty-spaces", b"chunked , ,")):
        found.append(Case(
            f"codings/{name}", "9110 5.6.1.2", "an empty member of the list is ignored, or refused",
            (post(HELLO + AFTER, b"Transfer-Encoding: " + value),),
            either(refused(400, 422, 501), arrives(Want(body=b"hello"), Want(b"/after"))), level="safety",
            finals={0: 2}))
    for name, line in (("plain", b"Transfer-Encoding: chunked"), ("upper-case", b"TRANSFER-ENCODING: CHUNKED"),
        ("mixed-case", b"Transfer-Encoding: ChUnKeD"),
                       ("no-space", b"Transfer-Encoding:chunked"),
                       ("white-space", b"Transfer-Encoding: \t chunked \t")):
        found.append(Case(
            f"codings/{name}", "9112 7", "chunked is chunked in any case and among optional white space",
            (post(HELLO + AFTER, line),),
            arrives(Want(body=b"hello"), Want(b"/after")), finals={0: 2}))
    for method in (b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"PUT"):
        body = b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n0\r\n\r\n"
        found.append(Case(
            f"codings/{method.decode().lower()}-chunked", "9110 9.3",
            "chunked content of any method is content, not the next request",
            (request(method + b" /x", b"Transfer-Encoding: chunked", body=body + AFTER),),
            either(both(gets(400, 411, 413, 405, 501),
            that("exploitable", "the content was taken for a request", only_after)),
                   arrives(Want(body=SMUGGLED, method=method), Want(b"/after"))), level="safety",
            finals={0: 2}, methods={0: [method.decode()]}))
    for name, lines in (("1.0", ()), ("1.0-keep-alive", (b"Connection: keep-alive",)),
        ("1.0-length", (b"Content-Length: 5", b"Connection: keep-alive"))):
        head = b"POST /x HTTP/1.0\r\n" + HOST + b"".join(each + b"\r\n" for each in lines) + b"Transfer-Encoding: chunked\r\n\r\n"
        found.append(Case(
            f"codings/http-{name}", "9112 6.1",
            "a coding in HTTP/1.0 is faulty framing: refused, or the connection ends after it",
            (head + HELLO + AFTER,), either(refused(400, 501, 505), arrives(Want(body=b"hello"), closes=True)),
            house=refused(),
            finals={0: 2}, closes=1.0))
    for name, line in (("connection-nominates-coding", b"Connection: transfer-encoding"),
        ("connection-nominates-both", b"Connection: close, Transfer-Encoding")):
        found.append(Case(
            f"codings/{name}", "9110 7.6.1", "naming the framing field as hop-by-hop does not unframe the body",
            (post(b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", line),),
            either(refused(), arrives(Want(body=SMUGGLED)))))
    found.append(Case(
        "codings/connection-nominates-length", "9110 7.6.1",
        "naming Content-Length as hop-by-hop does not unframe the body",
        (post(SMUGGLED, b"Content-Length: %d" % len(SMUGGLED), b"Connection: content-length"),),
        either(refused(), arrives(Want(body=SMUGGLED)))))
    return found + [_unknown(name, f"Transfer-Encoding {value!r} is refused", value) for name, value in UNKNOWN]
