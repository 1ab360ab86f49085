# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The lifetime of a caller's connection (RFC 9112 §9): kept, closed, half-closed, slow."""

from case import (
    AFTER, BODY, HOST, Await, AwaitUpstream, Case, Gate, HalfClose, Leave, On, Pause, Reply, Signal, Trickle, chunked,
    get, ok, post, response)
from judge import Want, arrives, both, either, ends, gets, refused, stays, that

OLD = b"GET /x HTTP/1.0\r\n" + HOST


def _says_close(seen):
    return bool(seen.finals()) and b"close" in seen.finals()[-1].fields.members(b"connection")


SAYS_CLOSE = that("should", "the answer does not say Connection: close", _says_close)


def _closes(name, about, *lines, level="MUST", section="9112 9.6"):
    """One answer, and the end; nothing that follows is served."""
    return Case(f"connections/{name}", section, about, (get(b"/x", *lines) + AFTER,),
        both(arrives(Want(), closes=True), SAYS_CLOSE), level=level, finals={0: 2}, closes=1.0)


def _keeps(name, about, *lines, section="9112 9.3"):
    return Case(f"connections/{name}", section, about, (get(b"/x", *lines), Await(1), AFTER),
        both(arrives(Want(), Want(b"/after")), stays()), level="SHOULD", finals={0: 2})


def cases():
    long = b"z" * 200_000
    return [
        _keeps("kept", "a connection is kept without a word"),
        _keeps("kept-keep-alive", "a connection is kept on keep-alive", b"Connection: keep-alive"),
        _keeps("kept-other-option", "an option that nobody knows closes nothing", b"Connection: x-closed, not-close"),
        _closes("close", "close is obeyed", b"Connection: close"),
        _closes("close-case", "close compares in any case", b"Connection: ClOsE"),
        _closes("close-list", "close in a list is obeyed", b"Connection: x-a, close"),
        _closes("close-list-first", "close before others is obeyed", b"Connection: close,x-a"),
        _closes("close-second-line", "close on a second line is obeyed", b"Connection: x-a", b"Connection: close"),
        _closes("close-and-keep-alive", "close wins over keep-alive", b"Connection: keep-alive, close"),
        _closes("close-white-space", "white space around close is none of it", b"Connection: \t ,, close \t,"),
        Case("connections/close-post", "9112 9.6", "close on a POST is obeyed when its body is there",
            (post(b"hello" + AFTER, b"Content-Length: 5", b"Connection: close"),),
            both(arrives(Want(body=b"hello"), closes=True), SAYS_CLOSE), finals={0: 2}, closes=1.0),
        Case("connections/1.0-closes", "9112 9.3", "HTTP/1.0 is one request", (OLD + b"\r\n" + AFTER,),
            arrives(Want(), closes=True), finals={0: 2}, closes=1.0),
        Case("connections/1.0-keep-alive", "9112 9.3", "HTTP/1.0 with keep-alive is kept and told so, or closed",
            (OLD + b"Connection: keep-alive\r\n\r\n", Await(1), OLD.replace(b"/x", b"/y") + b"\r\n"),
            either(both(arrives(Want(), Want(b"/y")),
            that("must", "kept, and not told so",
            lambda seen: seen.finals()[0].minor == 1 or b"keep-alive" in seen.finals()[0].fields.members(b"connection"))),
                    arrives(Want(), closes=True)), finals={0: 2}),
        Case("connections/1.0-keep-alive-told", "9112 C.2.2",
            "a caller of HTTP/1.0 whose connection is kept is told keep-alive",
            (OLD + b"Connection: keep-alive\r\n\r\n",),
            either(ends(), that("should", "kept, and not told keep-alive",
            lambda seen: b"keep-alive" in seen.finals()[0].fields.members(b"connection"))), level="SHOULD"),
        Case("connections/1.0-keep-alive-close", "9112 9.3", "close wins in HTTP/1.0",
            (OLD + b"Connection: keep-alive, close\r\n\r\n" + AFTER,), arrives(Want(), closes=True), finals={0: 2},
            closes=1.0),
        Case("connections/1.0-post", "9112 9.3", "a POST of HTTP/1.0 with a length",
            (b"POST /x HTTP/1.0\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello",),
            arrives(Want(body=b"hello"), closes=True)),
        Case("connections/version-of-answer", "9110 2.5", "answers say our version, not the caller's", (OLD + b"\r\n",),
            gets(200, minor=1), level="SHOULD"),
        Case("connections/sequence", "9112 9.3", "a hundred requests, one after the other",
            tuple(step for n in range(100) for step in (get(b"/%d" % n), Await(n + 1))),
            arrives(*(Want(b"/%d" % n) for n in range(100))), finals={0: 100}),
        Case("connections/half-close", "9112 9.6", "a caller that says it will send no more gets its answer",
            (get(), HalfClose()), arrives(Want()), level="safety"),
        Case("connections/half-close-slow", "9112 9.6",
            "a caller that says it will send no more gets an answer that takes a while",
            (get(), HalfClose(), AwaitUpstream(heads=1), Pause(0.1), Signal("go")), gets(200, body=b"slow"),
            upstream=(Reply.of(Gate("go"), ok(b"slow")),), level="safety"),
        Case("connections/half-close-post", "9112 9.6", "a caller that says no more after its body gets its answer",
            (post(b"hello", b"Content-Length: 5"), HalfClose()), arrives(Want(body=b"hello")), level="safety"),
        Case("connections/half-close-pipelined", "9112 9.6",
            "a caller that says no more after three requests gets three answers",
            (get() + get(b"/y") + get(b"/z"), HalfClose()),
            arrives(Want(), Want(b"/y"), Want(b"/z")), finals={0: 3}, level="safety"),
        Case("connections/leaves", "9112 9.5", "a caller that goes away ends what is done for it",
            (get(), AwaitUpstream(heads=1), Leave(reset=True), Pause(0.02), On(1), get(b"/other")),
            gets(200, on=1, body=b"GET /other"), upstream=(Reply.of(Gate("never")),), finals={1: 1}, level="safety"),
        Case("connections/byte-by-byte", "9112 2.2", "a GET byte by byte is a GET",
            (Trickle(get(b"/x", b"X-A: b") + AFTER),), arrives(Want(has=((b"x-a", b"b"),)), Want(b"/after")),
            finals={0: 2}),
        Case("connections/byte-by-byte-post", "9112 2.2", "a POST byte by byte is a POST",
            (Trickle(post(b"hello" + AFTER, b"Content-Length: 5")),), arrives(Want(body=b"hello"), Want(b"/after")),
            finals={0: 2}),
        Case("connections/two-by-two", "9112 2.2", "line ends may come in two pieces",
            (Trickle(post(b"hello" + AFTER, b"Content-Length: 5", b"X-A: b"), size=2),),
            arrives(Want(body=b"hello"), Want(b"/after")), finals={0: 2}),
        Case("connections/sevens", "9112 2.2", "chunks in pieces of seven",
            (Trickle(chunked(b"5\r\nhello\r\n11\r\n0123456789abcdefg\r\n0\r\nX-T: y\r\n\r\n" + AFTER), size=7),),
            arrives(Want(body=b"hello0123456789abcdefg"), Want(b"/after")), finals={0: 2}),
        Case("connections/body-apart", "9112 6", "a body that comes after its head is a body",
            (post(b"", b"Content-Length: 5"), Pause(0.03), b"hel", Pause(0.03), b"lo" + AFTER),
            arrives(Want(body=b"hello"), Want(b"/after")), finals={0: 2}),
        Case("connections/upload-streams", "safety", "a body goes up while it comes",
            (post(b"first", b"Content-Length: 10"), AwaitUpstream(data=b"first", seconds=2.0), b"other"),
            both(arrives(Want(body=b"firstother")),
            that("should", "the body was held back", lambda seen: seen.seconds < 1.9)), level="safety"),
        Case("connections/download-streams", "safety", "a body comes while it is made",
            (get(), Await(interim=True, seconds=2.0), Signal("go")),
            both(gets(200, body=b"onetwo"), that("should", "the body was held back", lambda seen: seen.seconds < 1.9)),
            upstream=(Reply.of(response(b"Content-Length: 6", body=b"one"), Gate("go"), b"two"),), level="safety"),
        Case("connections/events", "safety", "an event stream is not held back",
            (get(b"/x", b"Accept: text/event-stream"), _bytes(b"data: 1"), Signal("go"), _bytes(b"data: 2")),
            both(gets(200, body=b"data: 1\n\ndata: 2\n\n"),
            that("should", "events were held back", lambda seen: seen.seconds < 1.9)),
            upstream=(Reply.of(response(b"Content-Type: text/event-stream", b"Transfer-Encoding: chunked",
            body=b"9\r\ndata: 1\n\n\r\n"), Gate("go"), b"9\r\ndata: 2\n\n\r\n0\r\n\r\n"),), level="safety"),
        Case("connections/error-closes", "9112 9.6", "after an error of framing there is one answer and an end",
            (post(b"hello", b"Content-Length: x") + AFTER * 5,), refused(), closes=1.0, finals={0: 2}),
        Case("connections/error-after-good", "9112 9.6", "good requests before a bad one are answered, none after it",
            (get() + get(b"/y") + b"BAD\r\n\r\n" + AFTER,),
            refused(good=2), finals={0: 4}, closes=1.0),
        Case("connections/error-then-silence", "9112 9.6", "after an error nothing more is read, however late it comes",
            (post(b"hello", b"Content-Length: x"), Await(1), AFTER, Pause(0.1)),
            refused(), closes=1.0),
        Case("connections/error-in-body", "9112 9.6",
            "an error within a body ends the connection, and the upstream's request",
            (chunked(b"5\r\nhello\r\n"), AwaitUpstream(data=b"hello"), b"cow\r\n" + AFTER, Pause(0.05)),
            refused(silent=True), closes=1.5),
        Case("connections/error-in-body-answered", "9112 9.6",
            "an error within a body that was answered already adds no answer",
            (chunked(b"5\r\nhello\r\n"), Await(1), b"cow\r\n" + AFTER, Pause(0.1)),
            both(gets(200, body=b"early"), that("exploitable", "what followed was answered as a request",
            lambda seen: not any(each.target == b"/after" for each in seen.requests)), ends()),
            upstream=(Reply.of(ok(b"early"), early=True),), closes=1.5),
        Case("connections/many", "9112 9.4", "20 connections at once",
            tuple(step for n in range(20) for step in (On(n), get(b"/%d" % n))),
            both(*(gets(200, on=n, body=b"GET /%d" % n) for n in range(20))), finals={n: 1 for n in range(20)}),
        Case("connections/slow-head", "9110 15.5.9", "a head that never ends is 408, or the end, within a minute",
            (b"GET /x HTTP/1.1\r\nHost: loc",),
            either(refused(408), that("must", "the connection stays open",
            lambda seen: seen.callers[0].ended != "open")), lane="long", timeout=45.0, closes=2.0, level="SHOULD"),
        Case("connections/slow-head-trickled", "9110 15.5.9",
            "a head that comes a byte now and then is 408, or the end, within a minute",
            (b"GET /x HTTP/1.1\r\nHost: loc",) + (Pause(2.5), b"a") * 13,
            that("must", "the connection stays open", lambda seen: seen.callers[0].ended != "open"), lane="long",
            timeout=8.0, closes=2.0, level="SHOULD"),
        Case("connections/big-both-ways", "9112 7.1", "a long body up and down",
            (chunked(b"30d40\r\n" + long + b"\r\n0\r\n\r\n"),),
            both(arrives(Want(body=long)), gets(200, body=long)), upstream=(Reply.of(ok(long)),)),
        Case("connections/slow-reader", "9112 9.3", "a caller that reads late gets all", (get(), Pause(0.3)),
            gets(200, body=b"r" * 3_000_000), upstream=(Reply.of(ok(b"r" * 3_000_000)),)),
        Case("connections/answer-then-close-complete", "9112 9.6", "a long answer before the end arrives whole",
            (get(b"/x", b"Connection: close"), Pause(0.2)), gets(200, body=b"r" * 3_000_000),
            upstream=(Reply((BODY, ok(b"r" * 3_000_000))),), closes=2.0),
    ]


def _bytes(data):
    from case import AwaitBytes
    return AwaitBytes(data, seconds=2.0)
