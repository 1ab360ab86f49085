# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Trailers of requests (RFC 9112 §7.1.2, RFC 9110 §6.5), and of responses."""

from case import AFTER, SMUGGLED, Case, Reply, chunked, get, response
from judge import Want, arrives, both, either, gets, refused, that

HELLO = b"5\r\nhello\r\n0\r\n"


def _refused(name, about, trailer, level="safety", statuses=(400,), either_way=None):
    allowed = refused(*statuses, silent=True)
    return Case(
        f"trailers/{name}", "9112 7.1.2", about, (chunked(HELLO + trailer + AFTER),),
        either(allowed, either_way) if either_way else allowed, house=allowed if either_way else None, level=level,
        closes=1.5, finals={0: 2})


def _forbidden(name, line, has=()):
    """A trailer that would mean something in a head must not get there."""
    field = line.split(b":")[0].lower()
    return Case(
        f"trailers/forbidden-{name}", "9110 6.5.1", f"{line.decode()} as a trailer is not merged into the head",
        (chunked(HELLO + line + b"\r\n\r\n" + AFTER),),
        either(refused(silent=True), both(
            arrives(Want(body=b"hello"), Want(b"/after")),
            that("exploitable", "the trailer is in the head", lambda seen: not _in_head(seen, field, line)))),
        house=that("must", "the trailer was forwarded",
        lambda seen: not any(each.body.trailers.all(field) for each in seen.requests)),
        finals={0: 2})


def _in_head(seen, field, line):
    value = line.split(b":", 1)[1].strip()
    return any(value in each.fields.all(field) for each in seen.requests) and field != b"transfer-encoding"


def _in_response(name, about, reply, *predicates, lines=(b"TE: trailers", b"Connection: TE"), version=None, house=None):
    request = get(b"/x", *lines)
    if version:
        request = request.replace(b"HTTP/1.1", version)
    return Case(f"trailers/{name}", "9110 6.5", about, (request,), both(*predicates), upstream=(Reply.of(reply),),
        house=house)


def cases():
    dropped_or_kept = both(
        arrives(Want(body=b"hello"), Want(b"/after")),
        that("exploitable", "a trailer became a field of the head",
        lambda seen: not any(each.fields.all(b"x-t") for each in seen.requests)))
    plain = response(b"Transfer-Encoding: chunked", b"Trailer: X-T", body=b"5\r\nhello\r\n0\r\nX-T: end\r\n\r\n")
    found = [
        Case("trailers/one", "9112 7.1.2", "a trailer stays a trailer, or is dropped",
            (chunked(HELLO + b"X-T: end\r\n\r\n" + AFTER, b"Trailer: X-T"),), dropped_or_kept, finals={0: 2},
            house=that("must", "the trailer did not arrive",
            lambda seen: seen.requests and seen.requests[0].body.trailers.all(b"x-t") == [b"end"])),
        Case("trailers/several", "9112 7.1.2", "several trailers stay trailers, in order, or are dropped",
            (chunked(HELLO + b"X-T: 1\r\nX-U: 2\r\nX-T: 3\r\n\r\n" + AFTER),), dropped_or_kept, finals={0: 2},
            house=that("must", "the trailers did not arrive",
            lambda seen: seen.requests and seen.requests[0].body.trailers.all(b"x-t") == [b"1", b"3"])),
        Case("trailers/empty-value", "9112 7.1.2", "a trailer may be empty",
            (chunked(HELLO + b"X-T:\r\n\r\n" + AFTER),), dropped_or_kept, finals={0: 2}),
        _refused("no-colon", "a trailer without a colon is refused", b"X-T\r\n\r\n"),
        _refused("space-before-colon", "white space before a trailer's colon is refused", b"X-T : end\r\n\r\n"),
        _refused("nameless", "a trailer without a name is refused", b": end\r\n\r\n"),
        _refused("request-line", "a request line is no trailer", SMUGGLED),
        _refused("folded", "a folded trailer is refused or unfolded", b"X-T: a\r\n b\r\n\r\n",
            either_way=dropped_or_kept),
        _refused("leading-space", "a trailer that begins with white space is refused", b" X-T: a\r\n\r\n"),
        _refused("nul", "a NUL in a trailer is refused or made harmless", b"X-T: a\x00b\r\n\r\n",
            either_way=dropped_or_kept),
        _refused("bare-cr", "a bare CR in a trailer is refused or made harmless", b"X-T: a\rb\r\n\r\n",
            either_way=dropped_or_kept),
        _refused("bare-lf", "a bare LF after a trailer is refused, or ends the line", b"X-T: a\nX-U: b\r\n\r\n",
            either_way=dropped_or_kept),
        _refused("name-not-ascii", "a trailer's name is a token", b"X-\xc3\xa9: a\r\n\r\n", either_way=dropped_or_kept),
        _refused("long", "a trailer of 1 MiB is refused, or dropped", b"X-T: " + b"t" * 1048576 + b"\r\n\r\n",
            statuses=(400, 413, 431),
                 either_way=dropped_or_kept),
        _refused("many", "20,000 trailers are refused, or dropped", b"X-T: end\r\n" * 20_000 + b"\r\n",
            statuses=(400, 413, 431),
                 either_way=dropped_or_kept),
        _in_response("down-one", "a response's trailer is a trailer or is dropped, and no field of the head", plain,
                     gets(200, body=b"hello", lacks=(b"x-t",)),
                     house=that("must", "the trailer did not arrive",
                     lambda seen: seen.finals() and seen.finals()[0].body.trailers.all(b"x-t") == [b"end"])),
        _in_response("down-unasked", "a caller that did not ask for trailers gets a good response", plain,
                     gets(200, body=b"hello", lacks=(b"x-t",)), lines=()),
        _in_response("down-1.0", "a caller of HTTP/1.0 gets no trailer and no chunks", plain,
                     gets(200, body=b"hello", kind=("close", "length"), lacks=(b"x-t", b"transfer-encoding")),
                     version=b"HTTP/1.0"),
    ]
    for name, line in (
            ("length", b"Content-Length: 3"), ("transfer-encoding", b"Transfer-Encoding: identity"),
            ("host", b"Host: evil.example"),
            ("authorization", b"Authorization: Basic eA=="), ("cookie", b"Cookie: a=b"),
            ("connection", b"Connection: close"),
            ("trailer", b"Trailer: X-A"), ("content-type", b"Content-Type: text/evil"), ("via", b"Via: 1.1 evil"),
            ("expect", b"Expect: 100-continue"), ("upgrade", b"Upgrade: x"), ("te", b"TE: gzip"),
            ("proxy-authorization", b"Proxy-Authorization: Basic eA==")):
        found.append(_forbidden(name, line))
    for name, line in (
            ("length", b"Content-Length: 3"), ("set-cookie", b"Set-Cookie: evil=1"),
            ("location", b"Location: http://evil.example/"),
            ("transfer-encoding", b"Transfer-Encoding: gzip"), ("connection", b"Connection: close")):
        field = line.split(b":")[0].lower()
        found.append(_in_response(
            f"down-forbidden-{name}", f"{line.decode()} as a trailer of a response is not merged into the head",
            response(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n" + line + b"\r\n\r\n"),
            either(gets(502, complete=False), both(gets(200, complete=False), that(
                "exploitable", "the trailer is in the head",
                lambda seen, field=field,
                value=line.split(b": ")[1]: value not in seen.finals()[0].fields.all(field))))))
    for name, trailer in (
        ("no-colon", b"X-T"), ("bare-cr", b"X-T: a\rb"), ("nul", b"X-T: a\x00b"), ("bare-lf", b"X-T: a\nX-U: b"),
        ("folded", b"X-T: a\r\n b"),
        ("space-before-colon", b"X-T : a"), ("nameless", b": a"), ("response", b"HTTP/1.1 200 OK"),
        ("name-not-ascii", b"X-\xc3\xa9: a")):
        found.append(_in_response(
            f"down-odd-{name}", f"the trailer {trailer!r} of a response is dropped, made harmless, or ends it",
            response(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n" + trailer + b"\r\n\r\n"),
            that("exploitable", "a trailer line went through that is none", lambda seen: not any(
                each in bytes(seen.callers[0].received) for each in (b"a\rb", b"a\x00b", b"a\nX", b"X-T :", b"\r\n: a",
                b"0\r\nHTTP")))))
    return found
