# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""`Expect: 100-continue` (RFC 9110 §10.1.1), in every order of events; the body is sent once."""

from case import AFTER, BODY, HOST, SMUGGLED, Await, AwaitUpstream, Case, Pause, Reply, get, ok, post
from judge import Want, arrives, both, either, gets, refused, that

LENGTH = b"Content-Length: 5"
EXPECT = b"Expect: 100-continue"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ANSWERED = Reply.of(CONTINUE, BODY, ok(b"done"), early=True)
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"


def _told(seen):
    return [each.status for each in seen.callers[0].responses]


WAITED = that("must", "no 100 came to the caller that waited for it", lambda seen: _told(seen)[:1] == [100])
ONCE = that("should", "more than one 100", lambda seen: _told(seen).count(100) <= 1)
NEVER = that("must", "a 100 that it does not know", lambda seen: 100 not in _told(seen))


def _waits(name, about, *lines, body=b"hello", reply=ANSWERED, rule=(), section="9110 10.1.1", head=None):
    """The caller sends its body after the 100."""
    return Case(
        f"expectations/{name}", section, about, (head or post(b"", *lines), Await(interim=True), body),
        both(arrives(Want(body=b"hello")), ONCE, WAITED, *rule), upstream=(reply,))


def _refused_here(name, status, request, contract=True, **more):
    """A waiting caller gets the error at once, not after sending a body in vain."""
    head = request[:-2] + LENGTH + b"\r\n" + EXPECT + b"\r\n\r\n"
    return Case(f"expectations/refused-here-{name}", "9110 10.1.1",
        f"a {status} of the proxy's own comes at once, or a 100", (head,),
                that("must", "the caller that waits for a 100 is told nothing",
                lambda seen: bool(seen.callers[0].responses)), contract=contract, **more)


def cases():
    answered = ANSWERED
    return [
        _waits("waits", "a caller that waits for 100 gets one, and its body crosses once", LENGTH, EXPECT),
        _waits("waits-chunked", "a chunked body waits, too", b"Transfer-Encoding: chunked", EXPECT, body=CHUNKS),
        _waits("waits-case", "the expectation compares in any case", LENGTH, b"eXPECT: 100-CONTINUE"),
        _waits("waits-white-space", "white space is none of the expectation", LENGTH, b"Expect: \t 100-continue \t"),
        _waits("waits-slow-upstream", "an upstream that is slow with its 100 is waited for, or not", LENGTH, EXPECT,
               reply=Reply.of(Pause(0.15), CONTINUE, BODY, ok(b"done"), early=True)),
        _waits("waits-twice-said", "two 100 of the upstream's do no harm", LENGTH, EXPECT,
            reply=Reply.of(CONTINUE, BODY, ok(b"done"), early=True)),
        Case("expectations/does-not-wait", "9110 10.1.1", "a caller that does not wait is served",
            (post(b"hello" + AFTER, LENGTH, EXPECT),),
            both(arrives(Want(body=b"hello"), Want(b"/after")), ONCE), finals={0: 2}),
        Case("expectations/does-not-wait-upstream-says", "9110 10.1.1",
            "a 100 that comes when the body is there already does no harm",
            (post(b"hello" + AFTER, LENGTH, EXPECT),), both(arrives(Want(body=b"hello"), Want(b"/after")), ONCE),
            upstream=(answered,), finals={0: 2}),
        Case("expectations/does-not-wait-chunked", "9110 10.1.1", "a caller that does not wait is served, chunked too",
            (post(CHUNKS + AFTER, b"Transfer-Encoding: chunked", EXPECT),),
            both(arrives(Want(body=b"hello"), Want(b"/after")), ONCE), upstream=(answered,), finals={0: 2}),
        Case("expectations/waits-half-a-second", "9110 10.1.1", "a caller that gives up waiting is served",
            (post(b"", LENGTH, EXPECT), Pause(0.5), b"hello"),
            both(arrives(Want(body=b"hello")), ONCE), upstream=(Reply.of(BODY, ok(b"done"), early=True),)),
        Case("expectations/upstream-only-final", "9110 10.1.1",
            "an upstream that never says 100 gets the body all the same",
            (post(b"", LENGTH, EXPECT), Await(interim=True, seconds=2.5), b"hello"),
            both(arrives(Want(body=b"hello")), ONCE)),
        Case("expectations/refused-417", "9110 10.1.1",
            "a 417 of the upstream's reaches the caller that waits, or it is asked again without",
            (post(b"", LENGTH, EXPECT), Await(interim=True), b"hello"),
            either(gets(417),
            both(gets(200), that("must", "the body did not cross",
            lambda seen: any(each.body.data == b"hello" for each in seen.requests)))),
            upstream=(Reply.of(ok(b"no", status=b"417 Expectation Failed"), early=True),), exempt=(b"local",)),
        Case("expectations/refused-401", "9110 10.1.1", "a 401 instead of a 100 reaches the caller",
            (post(b"", LENGTH, EXPECT), Await(1)), gets(401, body=b"no"),
            upstream=(Reply.of(ok(b"no", b"WWW-Authenticate: Other", status=b"401 Unauthorized"), early=True),)),
        Case("expectations/final-first", "9110 10.1.1",
            "a final answer instead of a 100 reaches the caller, and its body is none or a body",
            (post(b"", b"Content-Length: %d" % len(SMUGGLED), EXPECT), Await(1), SMUGGLED, Pause(0.08)),
            both(gets(200, body=b"early"), that(
                 "exploitable", "a body was answered", lambda seen: len(seen.finals()) == 1)),
                 upstream=(Reply.of(ok(b"early"), early=True),)),
        Case("expectations/final-first-next", "9110 10.1.1",
            "after a final answer instead of a 100 the next request is not taken for the body without the connection's end",
            (post(b"", LENGTH, EXPECT), Await(1), AFTER),
            both(gets(413, body=b"no"), that("exploitable",
            "the body's bytes were left out of the request that follows", lambda seen: all(
                 each.target in (b"/x", b"/after") for each in seen.requests))),
                 upstream=(Reply.of(ok(b"no", status=b"413 Content Too Large"), early=True),), settle=0.1),
        Case("expectations/no-body", "9110 10.1.1", "an expectation without content does no harm",
            (get(b"/x", EXPECT) + AFTER,), arrives(Want(), Want(b"/after")), finals={0: 2}),
        Case("expectations/empty-body", "9110 10.1.1", "an expectation with no bytes of content does no harm",
            (post(b"", b"Content-Length: 0", EXPECT) + AFTER,),
            both(arrives(Want(body=b""), Want(b"/after")), ONCE), finals={0: 2}),
        Case("expectations/1.0", "9110 10.1.1", "an expectation in HTTP/1.0 is ignored, and no 100 sent",
            (b"POST /x HTTP/1.0\r\n" + HOST + LENGTH + b"\r\n" + EXPECT + b"\r\n\r\n", Pause(0.1), b"hello"),
            both(arrives(Want(body=b"hello")), NEVER)),
        Case("expectations/1.0-upstream-says", "9110 15.2",
            "a 100 of the upstream's does not reach a caller of HTTP/1.0",
            (b"POST /x HTTP/1.0\r\n" + HOST + LENGTH + b"\r\n" + EXPECT + b"\r\n\r\nhello",),
            both(arrives(Want(body=b"hello")), NEVER), upstream=(answered,)),
        Case("expectations/unknown", "9110 10.1.1", "an expectation nobody knows is 417, or passes",
            (post(b"hello", LENGTH, b"Expect: wonders"),),
            either(refused(417, close=False), arrives(Want(body=b"hello"))), house=refused(417, close=False),
            level="safety"),
        Case("expectations/unknown-beside", "9110 10.1.1", "one expectation of two that nobody knows is 417, or passes",
            (post(b"hello", LENGTH, b"Expect: 100-continue, wonders"),),
            either(refused(417, close=False), arrives(Want(body=b"hello"))), house=refused(417, close=False),
            level="safety"),
        Case("expectations/unknown-parameter", "9110 10.1.1", "100-continue takes no value",
            (post(b"hello", LENGTH, b"Expect: 100-continue=yes"),),
            either(refused(417, close=False), arrives(Want(body=b"hello"))), level="safety"),
        Case("expectations/unknown-hides", "9110 10.1.1", "the body of a request that is 417 is no request",
            (post(SMUGGLED + AFTER, b"Content-Length: %d" % len(SMUGGLED), b"Expect: wonders"),),
            either(arrives(Want(body=SMUGGLED), Want(b"/after")),
            both(gets(417), that("exploitable", "a hidden request was answered",
            lambda seen: len(seen.finals()) <= 2))),
            level="safety", finals={0: 2}),
        _refused_here("host", "421", get().replace(b"GET", b"POST").replace(b"localhost", b"evil.example")),
        _refused_here("page", "403", post(b"", b"Sec-Fetch-Site: cross-site")),
        _refused_here("trace", "405", post(b"").replace(b"POST", b"TRACE")),
        _refused_here("unknown", "417", post(b"", b"Expect: wonders")),
        _refused_here("unreachable", "502", post(b""), lane="dead", contract=False),
        Case("expectations/invalid-framing", "9112 6.3", "what is refused by its head is refused without a 100",
            (post(b"", b"Content-Length: x", EXPECT), Pause(0.05), b"hello"),
            both(refused(), NEVER), closes=1.0),
        Case("expectations/twice", "9110 10.1.1", "the same expectation twice is one, or 417",
            (post(b"", LENGTH, EXPECT, EXPECT), Await(interim=True, seconds=1.0), b"hello"),
            either(refused(417, 400, close=False), both(arrives(Want(body=b"hello")), ONCE)), level="safety"),
        Case("expectations/body-crosses-once", "9110 10.1.1", "a long body crosses once",
            (post(b"", b"Content-Length: 300000", EXPECT), Await(interim=True), b"q" * 300_000),
            both(arrives(Want(body=b"q" * 300_000)),
            that("exploitable", "the body went up twice", lambda seen: len(seen.requests) == 1)), upstream=(answered,)),
        Case("expectations/abandoned", "9112 8", "a caller that is told to go on and leaves sends no whole body",
            (post(b"", LENGTH, EXPECT), Await(interim=True), b"he", Pause(0.05)),
            that("exploitable", "a whole request", lambda seen: not any(each.complete for each in seen.requests)),
            upstream=(answered,), finals={}),
        Case("expectations/pipelined", "9110 10.1.1", "an expectation in the second of two requests is kept for it",
            (get() + post(b"", LENGTH, EXPECT, target=b"/y"), Await(1), AwaitUpstream(heads=2), Pause(0.05), b"hello"),
            arrives(Want(), Want(b"/y", body=b"hello")), finals={0: 2}),
    ]
