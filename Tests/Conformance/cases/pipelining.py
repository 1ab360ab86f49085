# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Pipelined requests (RFC 9112 §9.3.2) of every kind, answered in order."""

from case import AFTER, Await, AwaitUpstream, Case, Gate, Pause, Reply, Signal, chunked, get, ok, post, request
from judge import Want, arrives, both, gets, refused, that


def _bodies(*bodies):
    return that("exploitable", "the answers are not in the order of the requests",
        lambda seen: [each.body.data for each in seen.finals()] == list(bodies))


def _mixed():
    """Twenty requests of all kinds; what arrives, the answers' bodies, the methods."""
    sent, wants, bodies, methods = b"", [], [], []
    for number in range(20):
        target = b"/%d" % number
        kind = number % 5
        if kind == 0:
            sent, body, method = sent + get(target), b"", b"GET"
        elif kind == 1:
            sent, body, method = sent + post(b"hello", b"Content-Length: 5", target=target), b"hello", b"POST"
        elif kind == 2:
            sent, body, method = sent + request(b"HEAD " + target), b"", b"HEAD"
        elif kind == 3:
            sent, body, method = sent + chunked(b"5\r\nhello\r\n0\r\n\r\n", target=target), b"hello", b"POST"
        else:
            sent, body, method = sent + request(b"DELETE " + target), b"", b"DELETE"
        wants.append(Want(target, body=body, method=method))
        bodies.append(b"" if method == b"HEAD" else method + b" " + target)
        methods.append(method.decode())
    return sent, wants, bodies, methods


def cases():
    sent, wants, bodies, methods = _mixed()
    gets_20 = b"".join(get(b"/%d" % number) for number in range(20))
    answers = tuple(b"GET /%d" % number for number in range(20))
    return [
        Case("pipelining/20", "9112 9.3.2", "20 requests are answered in order", (gets_20,),
            both(arrives(*(Want(b"/%d" % n) for n in range(20))), _bodies(*answers)), finals={0: 20}),
        Case("pipelining/20-mixed", "9112 9.3.2", "20 requests of all kinds are answered in order", (sent,),
            both(arrives(*wants), _bodies(*bodies)), finals={0: 20}, methods={0: methods}),
        Case("pipelining/20-mixed-split", "9112 9.3.2", "20 requests of all kinds, cut anywhere, are answered in order",
            (sent[:333], Pause(0.02), sent[333:666], Pause(0.02), sent[666:]),
            both(arrives(*wants), _bodies(*bodies)), finals={0: 20}, methods={0: methods}),
        Case("pipelining/200", "9112 9.3.2", "200 requests are answered in order",
            (b"".join(get(b"/%d" % n) for n in range(200)),),
            _bodies(*(b"GET /%d" % n for n in range(200))), finals={0: 200}, timeout=10.0),
        Case("pipelining/first-slow", "9112 9.3.2", "a quick answer waits for the slow one before it",
            (get(b"/slow") + get(b"/quick"), AwaitUpstream(heads=1), Pause(0.05), Signal("go")),
            _bodies(b"slow", b"GET /quick"), upstream=(Reply.of(Gate("go"), ok(b"slow")),), finals={0: 2}),
        Case("pipelining/unsafe-waits", "9112 9.3.2", "after a POST nothing goes up until it is answered",
            (post(b"hello", b"Content-Length: 5") + AFTER, AwaitUpstream(heads=1), Pause(0.05), Signal("go")),
            both(_bodies(b"done", b"GET /after"),
            that("must", "two requests at once on one upstream connection", lambda seen: True)),
            upstream=(Reply.of(Gate("go"), ok(b"done")),), finals={0: 2}),
        Case("pipelining/bad-in-the-middle", "9112 9.3.2", "three good ones, a bad one, and no more",
            (get(b"/0") + get(b"/1") + get(b"/2") + b"GET / HTTP/1.1\r\n\r\n" + AFTER * 3,),
            refused(good=3), finals={0: 7}, closes=1.0),
        Case("pipelining/bad-length-in-the-middle", "9112 6.3", "a good one, an invalid length, and no more",
            (get(b"/0") + post(b"hello", b"Content-Length: 5x") + AFTER * 3,),
            refused(good=1), finals={0: 5}, closes=1.0),
        Case("pipelining/close-in-the-middle", "9112 9.6", "after close nothing is served",
            (get(b"/0") + get(b"/1", b"Connection: close") + AFTER * 3,),
            arrives(Want(b"/0"), Want(b"/1"), closes=True), finals={0: 5}, closes=1.0),
        Case("pipelining/1.0-in-the-middle", "9112 9.3", "after a request of HTTP/1.0 nothing is served",
            (get(b"/0") + b"GET /1 HTTP/1.0\r\nHost: localhost\r\n\r\n" + AFTER * 3,),
            arrives(Want(b"/0"), Want(b"/1"), closes=True), finals={0: 5}, closes=1.0),
        Case("pipelining/upstream-closes-each", "9112 9.3.2",
            "an upstream that closes after each answer changes nothing", (b"".join(get(b"/%d" % n) for n in range(5)),),
            _bodies(*(b"hello",) * 5), upstream=(Reply.of(ok(b"hello", b"Connection: close"), _close()),), sticky=True,
            finals={0: 5}),
        Case("pipelining/local-between", "9112 9.3.2", "an answer of ours between two of the upstream's comes in order",
            (get(b"/0") + get(b"/1", b"Expect: wonders") + get(b"/2"),),
            that("must", "answers out of order",
            lambda seen: [each.status for each in seen.finals()] in ([200, 417, 200], [200, 417], [200, 200, 200])),
            finals={0: 3}, level="safety"),
        Case("pipelining/error-between", "9112 9.3.2", "an upstream's failure between two answers comes in order",
            (get(b"/0") + get(b"/1") + get(b"/2"),),
            that("must", "answers out of order",
            lambda seen: [each.status for each in seen.finals()][:2] == [200, 502] and all(
                 each.body.data in (b"GET /0", b"GET /2") for each in seen.finals() if each.status == 200)),
                 upstream=(Reply.of(ok(b"GET /0")), Reply.of(b"garbage\r\n\r\n", _close())), finals={0: 3}),
        Case("pipelining/cut-in-the-middle", "9112 8", "a body cut short in the middle ends all",
            (get(b"/0") + get(b"/1") + get(b"/2"),),
            both(gets(200), that("exploitable", "the cut answer looks whole, or was followed by another",
            lambda seen: len(seen.finals()) <= 2 or seen.finals()[1].status == 502)),
            upstream=(Reply.of(ok(b"GET /0")),
            Reply.of(b"HTTP/1.1 200 OK\r\nX-Up: 1\r\nContent-Length: 50\r\n\r\nhalf", _close())), sticky=True,
            finals={0: 3}, closes=2.0),
        Case("pipelining/head-first", "9112 9.3.2", "an answer to HEAD takes nothing of the next",
            (request(b"HEAD /x") + get(b"/after"), Await(2)), _bodies(b"", b"GET /after"), finals={0: 2},
            methods={0: ["HEAD"]}),
    ]


def _close():
    from case import CLOSE
    return CLOSE
