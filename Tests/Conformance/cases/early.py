# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Answers that come before the body is sent (RFC 9112 §9.3 and §9.6): the following bytes are a body, never a request."""

from case import (
    AFTER, BODY, CLOSE, SMUGGLED, Await, AwaitUpstream, Case, Gate, On, Pause, Reply, Signal, get, ok, post, response)
from judge import both, either, gets, that

LENGTH = b"Content-Length: %d"
EARLY = Reply.of(ok(b"early"), early=True)
REFUSED = Reply.of(ok(b"too long", status=b"413 Content Too Large"), early=True)


def _only_the_post(seen):
    """Neither the body nor what is hidden in it became a request; at most the one that follows it."""
    return all(each.target in (b"/x", b"/after") for each in seen.requests) and len(seen.requests) <= 2


ONLY = that("exploitable", "a body was taken for a request", _only_the_post)
ONCE = that("exploitable", "the body has an answer of its own", lambda seen: len(seen.finals()) <= 2)


def cases():
    chunked = b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n0\r\n\r\n"
    long = b"y" * 4_000_000
    return [
        Case("early/length-body-after-answer", "9112 9.3", "a body that comes after its answer is a body",
            (post(b"", LENGTH % len(SMUGGLED)), Await(1), SMUGGLED, Pause(0.1)),
            both(gets(200, body=b"early"), ONLY, ONCE), upstream=(EARLY,)),
        Case("early/chunked-body-after-answer", "9112 9.3", "a chunked body that comes after its answer is a body",
            (post(b"", b"Transfer-Encoding: chunked"), Await(1), chunked, Pause(0.1)),
            both(gets(200, body=b"early"), ONLY, ONCE), upstream=(EARLY,)),
        Case("early/error-body-after-answer", "9112 9.3", "a body that comes after a 413 is a body",
            (post(b"", LENGTH % len(SMUGGLED)), Await(1), SMUGGLED, Pause(0.1)), both(gets(413), ONLY, ONCE),
            upstream=(REFUSED,)),
        Case("early/close-body-after-answer", "9112 9.3",
            "a body that comes after the upstream has answered and closed is a body",
            (post(b"", LENGTH % len(SMUGGLED)), Await(1), SMUGGLED, Pause(0.1)), both(gets(413), ONLY, ONCE),
            upstream=(Reply.of(ok(b"no", b"Connection: close", status=b"413 Content Too Large"), CLOSE, early=True),)),
        Case("early/next-request", "9112 9.3",
            "after the body of an early answered request the next one is served, or the connection ended",
            (post(b"", LENGTH % len(SMUGGLED)), Await(1), SMUGGLED + AFTER), both(
                 gets(200, body=b"early"), ONLY, either(
                     gets(200, number=1, body=b"GET /after"),
                     that("must", "neither answered nor ended",
                     lambda seen: len(seen.finals()) == 1 and seen.callers[0].ended != "open"))),
            upstream=(EARLY,), finals={0: 2}),
        Case("early/no-poison", "9112 9.3",
            "the rest of a body that nobody read does not go up as the beginning of another request",
            (post(b"half", LENGTH % (4 + len(SMUGGLED))), Await(1), On(1), get(b"/after"), Await(1), On(0), SMUGGLED,
            Pause(0.05), On(1), get(b"/after")),
            both(gets(200, body=b"early"), gets(200, number=0, on=1), gets(200, number=1, on=1),
                  that("exploitable", "a body was taken for a request",
                  lambda seen: all(each.target in (b"/x", b"/after") for each in seen.requests))),
            upstream=(EARLY,), finals={0: 1, 1: 2}),
        Case("early/long-body", "9112 9.3", "an answer to half a long body reaches its caller, who may go on sending",
            (post(b"", LENGTH % len(long)), long[:200_000], AwaitUpstream(heads=1), Signal("answer"), long[200_000:]),
            both(gets(413, body=b"too long"), that("must", "the upstream saw more than one request",
            lambda seen: len(seen.requests) == 1)),
            upstream=(Reply.of(Gate("answer"), ok(b"too long", b"Connection: close", status=b"413 Content Too Large"),
            Pause(0.2), CLOSE, early=True),),
            level="safety"),
        Case("early/reply-survives-unread-data", "9112 9.6",
            "an error's reply can be read although its caller goes on sending",
            (post(b"", b"Content-Length: x"), b"z" * 300_000, Pause(0.05), b"z" * 300_000), gets(400), level="SHOULD",
            closes=2.0),
        Case("early/reply-survives-sent-before", "9112 9.6",
            "an error's reply can be read although there was more to read",
            (b"BAD\x00LINE\r\n\r\n" + b"z" * 500_000,), gets(400), level="SHOULD", closes=2.0),
        Case("early/expected-refusal", "9110 10.1.1",
            "a refusal instead of 100 reaches the caller, and what it then sends is no request",
            (post(b"", LENGTH % len(SMUGGLED), b"Expect: 100-continue"), Await(1), SMUGGLED, Pause(0.1)),
            both(gets(413), ONLY, ONCE), upstream=(REFUSED,)),
        Case("early/while-sending", "9112 9.3", "an early response streams while the request still does",
            (post(b"first", LENGTH % 10), AwaitUpstream(heads=1), Signal("one"), Await(interim=True), b"other",
            Await(1)),
            both(gets(200, body=b"ab"), that("must", "the body is not whole upstream",
            lambda seen: seen.requests[0].body.data == b"firstother")),
            upstream=(Reply.of(Gate("one"), response(b"Content-Length: 2", body=b"a"), BODY, b"b", early=True),),
            level="safety"),
    ]
