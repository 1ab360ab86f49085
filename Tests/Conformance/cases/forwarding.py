# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""`Via` (RFC 9110 §7.6.3) and `Max-Forwards` (§7.6.2)."""

import re

from case import HOST, BODY, Case, Reply, get, ok, request
from judge import Want, arrives, both, either, gets, nothing_upstream, refused, that

MEMBER = re.compile(rb"(?:HTTP/)?(1\.[01]|2|2\.0) [!#$%&'*+\-.^_`|~0-9A-Za-z\[\]:]+(?: \(.*\))?")


def _via(seen):
    return [part.strip() for value in seen.requests[0].fields.all(b"via") for part in value.split(b",")] if seen.requests else []


def _has_via(version=b"1.1", before=()):
    """Ours at the end, the earlier ones before ours in their order."""
    def holds(seen):
        members = _via(seen)
        return (len(members) == len(before) + 1 and members[:-1] == list(before)
                and bool(match := MEMBER.fullmatch(members[-1])) and match.group(1) == version)
    return that("must", "Via upstream is not those from before and ours", holds)


def _response_via(before):
    def holds(seen):
        members = [part.strip() for value in seen.finals()[0].fields.all(b"via") for part in value.split(b",")]
        return members[:len(before)] == list(before) and all(MEMBER.fullmatch(each) for each in members[len(before):])
    return that("must", "Via of the response is not those from before, and perhaps ours", holds)


def _hops(name, about, method, value, allowed, level="MUST", house=None, body=b""):
    """`allowed`: what may go upstream as Max-Forwards; empty means that the request is answered here."""
    def holds(seen):
        return seen.requests and seen.requests[0].fields.all(b"max-forwards") in [list(each) for each in allowed]
    forwarded = both(arrives(Want(method=method)),
        that("must", f"Max-Forwards upstream is not one of {allowed}", holds))
    here = both(nothing_upstream(), gets(200, 204, 405, 501, 400))
    accept = here if not allowed else either(forwarded, both(nothing_upstream(), gets(405, 501, 400)))
    return Case(f"forwarding/max-forwards-{name}", "9110 7.6.2", about,
        (request(method + b" /x", b"Max-Forwards: " + value),), accept, level=level, house=house)


def cases():
    return [
        Case("forwarding/via", "9110 7.6.3", "a gateway adds Via to a request", (get(),),
            both(arrives(Want()), _has_via())),
        Case("forwarding/via-1.0", "9110 7.6.3", "Via tells the version that the request came in",
            (b"GET /x HTTP/1.0\r\n" + HOST + b"\r\n",),
            both(arrives(Want()), _has_via(b"1.0"))),
        Case("forwarding/via-before", "9110 7.6.3", "ours comes behind those from before",
            (get(b"/x", b"Via: 1.0 fred, 1.1 p.example.net"),),
            both(arrives(Want()), _has_via(before=(b"1.0 fred", b"1.1 p.example.net")))),
        Case("forwarding/via-lines", "9110 7.6.3", "ours comes behind those of several lines",
            (get(b"/x", b"Via: 1.0 a", b"X-A: b", b"Via: 1.1 b (c)"),),
            both(arrives(Want()), _has_via(before=(b"1.0 a", b"1.1 b (c)")))),
        Case("forwarding/via-named", "9110 7.6.1", "naming Via as hop-by-hop leaves ours",
            (get(b"/x", b"Via: 1.0 a", b"Connection: via"),),
            both(arrives(Want()), that("must", "no Via of ours upstream",
            lambda seen: _via(seen) and MEMBER.fullmatch(_via(seen)[-1]) and _via(seen)[-1] != b"1.0 a"))),
        Case("forwarding/via-no-address", "9110 7.6.3", "Via tells no address of ours", (get(),),
            that("should", "Via holds an address", lambda seen: not any(b"127.0.0.1" in each for each in _via(seen))),
            level="SHOULD"),
        Case("forwarding/via-down", "9110 7.6.3", "Via of a response stays, ours at most behind it", (get(),),
            both(gets(200), _response_via([b"1.0 a", b"1.1 b"])),
            upstream=(Reply.of(ok(b"hello", b"Via: 1.0 a, 1.1 b")),)),
        _hops("options-0", "OPTIONS with 0 hops left is answered here", b"OPTIONS", b"0", ()),
        _hops("options-1", "OPTIONS with one hop left goes on with none", b"OPTIONS", b"1", ([b"0"],)),
        _hops("options-5", "OPTIONS loses a hop", b"OPTIONS", b"5", ([b"4"],)),
        _hops("options-10", "10 hops less one are 9", b"OPTIONS", b"10", ([b"9"],)),
        _hops("options-zeros", "005 hops less one are 4", b"OPTIONS", b"005", ([b"4"], [b"004"])),
        _hops("options-huge", "a number no integer holds is lowered to what we know", b"OPTIONS",
            b"99999999999999999999",
              ([b"99999999999999999998"], [b"9223372036854775807"], [b"9223372036854775806"], [b"18446744073709551615"],
              [b"18446744073709551614"], [b"4294967295"], [b"2147483647"], [b"255"])),
        Case("forwarding/max-forwards-asterisk-0", "9110 7.6.2", "OPTIONS * with 0 hops left is answered here",
            (request(b"OPTIONS *", b"Max-Forwards: 0"),),
            both(nothing_upstream(), gets(200, 204, 405, 501, 400))),
        Case("forwarding/max-forwards-word", "9110 7.6.2", "hops that are no number are refused, or left alone",
            (request(b"OPTIONS /x", b"Max-Forwards: x"),),
            either(refused(close=False), arrives(Want(method=b"OPTIONS"))), level="safety"),
        Case("forwarding/max-forwards-minus", "9110 7.6.2", "negative hops are refused, or left alone",
            (request(b"OPTIONS /x", b"Max-Forwards: -1"),),
            either(refused(close=False), arrives(Want(method=b"OPTIONS"))), level="safety"),
        Case("forwarding/max-forwards-trace-0", "9110 7.6.2", "TRACE with 0 hops left goes no further",
            (request(b"TRACE /x", b"Max-Forwards: 0"),), nothing_upstream()),
        Case("forwarding/max-forwards-get-0", "9110 7.6.2", "GET with 0 hops may pass",
            (get(b"/x", b"Max-Forwards: 0"),),
            either(arrives(Want()), both(nothing_upstream(), gets(200, 400, 502, 508))), level="safety"),
        Case("forwarding/max-forwards-get-5", "9110 7.6.2", "GET with 5 hops passes", (get(b"/x", b"Max-Forwards: 5"),),
            arrives(Want()), level="safety"),
        Case("forwarding/range", "9110 14.2", "Range passes, and 206 comes back as it is",
            (get(b"/x", b"Range: bytes=0-4"),),
            both(arrives(Want(has=((b"range", b"bytes=0-4"),)), statuses=(206,)),
            gets(206, body=b"hello", has=((b"content-range", b"bytes 0-4/9"),))),
            upstream=(Reply.of(ok(b"hello", b"Content-Range: bytes 0-4/9", status=b"206 Partial Content")),)),
        Case("forwarding/conditional", "9110 13", "conditions pass",
            (get(b"/x", b'If-None-Match: "a", W/"b"', b"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"),),
            arrives(Want(has=((b"if-none-match", b'"a", W/"b"'),
            (b"if-modified-since", b"Sun, 06 Nov 1994 08:49:37 GMT"))))),
        Case("forwarding/no-added-accept", "9110 12", "no Accept, User-Agent or Accept-Encoding is made up", (get(),),
            both(arrives(Want()), that("should", "fields that the caller did not send went up",
                                        lambda seen: not any(seen.requests[0].fields.all(name) for name in (b"accept",
                                        b"user-agent", b"accept-encoding", b"referer", b"expect", b"content-type")))),
            level="SHOULD"),
        Case("forwarding/no-added-type", "9110 8.3", "no Content-Type is made up for a body",
            (request(b"POST /x", b"Content-Length: 5", body=b"hello"),),
            both(arrives(Want(body=b"hello")),
            that("should", "a Content-Type that the caller did not send went up",
            lambda seen: not seen.requests[0].fields.all(b"content-type"))), level="SHOULD"),
        Case("forwarding/post-empty-length", "9110 8.6", "a POST without content says so upstream",
            (request(b"POST /x", b"Content-Length: 0"),),
            both(arrives(Want(body=b"")), that("should", "no Content-Length: 0 upstream",
            lambda seen: seen.requests[0].fields.all(b"content-length") == [b"0"])), level="SHOULD"),
        Case("forwarding/get-no-length", "9110 8.6", "a GET without content gets no framing", (get(),),
            both(arrives(Want(body=b"", lacks=(b"transfer-encoding",))),
            that("should", "Content-Length upstream", lambda seen: not seen.requests[0].fields.all(b"content-length"))),
            level="SHOULD"),
        Case("forwarding/length-kept", "9110 8.6", "a length known stays a length",
            (request(b"PUT /x", b"Content-Length: 5", body=b"hello"),),
            both(arrives(Want(body=b"hello")),
            that("should", "the length became chunks", lambda seen: seen.requests[0].kind == "length")),
            level="SHOULD"),
        Case("forwarding/redirect-not-followed", "9110 15.4", "a redirect is the caller's to follow", (get(),),
            both(gets(302), that("must", "it was followed", lambda seen: len(seen.requests) == 1)),
            upstream=(Reply.of(ok(b"", b"Location: /other", status=b"302 Found")),)),
        Case("forwarding/content-coding-kept", "9110 7.7", "a coded body is not decoded",
            (get(b"/x", b"Accept-Encoding: gzip"),),
            gets(200, body=b"\x1f\x8b\x08\x00not really", has=((b"content-encoding", b"gzip"),)),
            upstream=(Reply.of(ok(b"\x1f\x8b\x08\x00not really", b"Content-Encoding: gzip")),)),
        Case("forwarding/slow-answer", "9110 3.7", "an answer in pieces arrives as they come", (get(),),
            gets(200, body=b"hello"),
            upstream=(Reply((BODY, b"HTTP/1.1 200 OK\r\nX-Up: 1\r\nContent-", b"Length: 5\r\n\r", b"\nhe", b"llo")),)),
    ]
