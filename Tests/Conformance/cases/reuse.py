# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Reused connections to the upstream (RFC 9112 §9): bytes left over by one response reach no other exchange, and no
request is sent twice that must not be."""

from case import CLOSE, RESET, AwaitUpstream, Await, Case, Gate, On, Pause, Reply, Signal, get, ok, post, response
from judge import bad_gateway, both, either, ends, gets, that

POISON = b"HTTP/1.1 200 OK\r\nX-Up: 1\r\nContent-Length: 6\r\n\r\nPOISON"
FOLDED = b"HTTP/1.1 200 OK\r\n X-B: " + b"b" * 300 + b"\r\nX-Up: 1\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"Transfer-Encoding: chunked"
NEXT = (get(b"/next"), Await(2), On(1), get(b"/other"), Await(1))


def _left_over(name, about, first, *steps, head=get(), methods=(), first_rule=None, section="9112 9.2", severity=None):
    """Bytes left over by the first answer belong neither to the second on this connection nor to one on another."""
    return Case(
        f"reuse/{name}", section, about, (head, Await(1), Pause(0.03)) + NEXT,
        both(first_rule or gets(200, body=b"hello"),
            either(gets(200, number=1, body=b"GET /next"),
            that("must", "neither the next answer nor the end",
            lambda seen: len(seen.finals()) == 1 and seen.callers[0].ended != "open")),
            gets(200, on=1, body=b"GET /other")),
        upstream=(Reply.of(first, *steps),), finals={0: 2, 1: 1}, methods={0: list(methods)})


def _once(name, about, request, *reply, house=None):
    """Sent on a connection used before, and not answered: it may have been done, so it is not sent again."""
    return Case(
        f"reuse/{name}", "9110 9.2.2", about, (get(b"/first"), Await(1), request),
        both(gets(200), that("must", "it was sent more than once",
        lambda seen: sum(each.target == b"/x" for each in seen.requests) == 1),
            either(gets(502, 503, 504, number=1),
            that("must", "neither an error nor the end", lambda seen: seen.callers[0].ended != "open"))),
        upstream=(Reply.of(ok()), Reply.of(*reply)), sticky=True, finals={0: 2}, house=house)


def cases():
    found = [
        _left_over("length-then-response", "a response behind the length's end", ok() + POISON),
        _left_over("length-then-garbage", "garbage behind the length's end", ok() + b"POISON POISON\r\n\r\n"),
        _left_over("length-zero-then-body", "a body behind a length of 0", ok(b"") + POISON,
            first_rule=gets(200, body=b"")),
        _left_over("chunked-then-response", "a response behind the last chunk",
            response(CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n") + POISON),
        _left_over("chunked-then-crlf", "an empty line behind the last chunk",
            response(CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n\r\n")),
        _left_over("late-response", "a response while nobody has asked", ok(), Pause(0.015), POISON),
        _left_over("late-garbage", "garbage while nobody has asked", ok(), Pause(0.015), b"POISON\r\n\r\n"),
        _left_over("late-408", "a 408 while nobody has asked", ok(), Pause(0.015),
            b"HTTP/1.1 408 POISON\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", CLOSE),
        _left_over("head-with-body", "the body of an answer to HEAD", ok() + POISON,
            head=b"HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n", methods=("HEAD",), first_rule=gets(200, body=b"")),
        _left_over("head-is-response", "a response as the body of an answer to HEAD",
            response(b"Content-Length: %d" % len(POISON), body=POISON),
            head=b"HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n",
                   methods=("HEAD",), first_rule=gets(200, body=b"")),
        _left_over("204-with-body", "a response behind a 204", response(status=b"204 No Content") + POISON,
            first_rule=gets(204, 502, complete=False)),
        _left_over("204-with-length", "a response as the body of a 204",
            response(b"Content-Length: %d" % len(POISON), status=b"204 No Content", body=POISON),
            first_rule=gets(204, 502, complete=False)),
        _left_over("304-with-body", "a response as the body of a 304",
            response(b"Content-Length: %d" % len(POISON), status=b"304 Not Modified", body=POISON),
            first_rule=gets(304, 502, complete=False)),
        _left_over("two-answers-early", "two answers before the body was read", ok() + POISON,
            head=post(b"hello", b"Content-Length: 5")),
        _left_over("error-keeps-nothing", "a length that is invalid and a response behind it",
            response(b"Content-Length: x", body=b"hello") + POISON, first_rule=bad_gateway()),
        _left_over("bad-chunk-keeps-nothing", "a chunk that is invalid and a response behind it",
            response(CHUNKED, body=b"cow\r\n") + POISON, first_rule=that(
            "must", "the bad chunk looks whole",
            lambda seen: not seen.finals() or seen.finals()[0].status == 502 or not seen.finals()[0].body.complete)),
        _left_over("close-is-close", "a response behind the length's end that says close",
            ok(b"hello", b"Connection: close") + POISON),
        Case("reuse/kept", "9112 9.3", "a connection is used again", (get(), Await(1), get(b"/next"), Await(2)),
            both(gets(200), gets(200, number=1),
            that("should", "two connections for two requests", lambda seen: seen.script.connections == 1)),
            finals={0: 2}, level="SHOULD"),
        Case("reuse/kept-after-head", "9112 9.3", "a connection is used again after HEAD",
            (b"HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n", Await(1), get(b"/next"), Await(2)),
            both(gets(200), gets(200, number=1, body=b"GET /next")), finals={0: 2}, methods={0: ["HEAD"]}),
        Case("reuse/idle-closed", "9112 9.5",
            "a connection that the upstream closed while it was idle costs nobody an answer",
            (get(), Await(1), Pause(0.05), get(b"/next"), Await(2)),
            both(gets(200), gets(200, number=1, body=b"GET /next")), upstream=(Reply.of(ok(), Pause(0.01), CLOSE),),
            finals={0: 2}, level="SHOULD"),
        Case("reuse/idle-reset", "9112 9.5",
            "a connection that the upstream reset while it was idle costs nobody an answer",
            (get(), Await(1), Pause(0.05), get(b"/next"), Await(2)),
            both(gets(200), gets(200, number=1, body=b"GET /next")), upstream=(Reply.of(ok(), Pause(0.01), RESET),),
            finals={0: 2}, level="SHOULD"),
        Case("reuse/idle-closed-post", "9112 9.5", "a connection closed while it was idle costs no POST either",
            (get(), Await(1), Pause(0.05), post(b"hello", b"Content-Length: 5"), Await(2)),
            both(gets(200), gets(200, number=1),
            that("must", "the POST came twice", lambda seen: len(seen.requests) == 2)),
            upstream=(Reply.of(ok(), Pause(0.01), CLOSE),), finals={0: 2}, level="SHOULD"),
        _once("post-not-repeated", "a POST that may have been done is not repeated",
            post(b"hello", b"Content-Length: 5"), CLOSE),
        _once("post-not-repeated-reset", "a POST that may have been done is not repeated after a reset",
            post(b"hello", b"Content-Length: 5"), RESET),
        _once("post-empty-not-repeated", "a POST without content is not repeated either",
            post(b"", b"Content-Length: 0"), CLOSE),
        _once("post-chunked-not-repeated", "a chunked POST is not repeated", post(b"5\r\nhello\r\n0\r\n\r\n", CHUNKED),
            CLOSE),
        _once("patch-not-repeated", "a PATCH that may have been done is not repeated",
            post(b"hello", b"Content-Length: 5").replace(b"POST", b"PATCH"), CLOSE),
        _once("unknown-not-repeated", "a method that nobody knows is not repeated", get().replace(b"GET", b"FOO"),
            CLOSE),
        _once("post-half-answer-not-repeated", "a POST with half an answer is not repeated",
            post(b"hello", b"Content-Length: 5"), b"HTTP/1.1 200", CLOSE),
        Case("reuse/get-may-repeat", "9110 9.2.2",
            "a GET that was not answered on a used connection is repeated, or 502", (get(b"/first"), Await(1), get()),
            both(gets(200), either(gets(200, 502, number=1), ends())), upstream=(Reply.of(ok()), Reply.of(CLOSE)),
            finals={0: 2}, level="safety"),
        Case("reuse/get-not-forever", "9110 9.2.2", "a GET that is never answered is 502 in the end",
            (get(b"/first"), Await(1), get()),
            both(gets(200), either(gets(502, number=1), ends()),
            that("must", "it was sent without end", lambda seen: len(seen.requests) <= 5)),
            upstream=(Reply.of(ok()), Reply.of(CLOSE)), sticky=True, finals={0: 2}),
        # libcurl before 8.5 keeps a pointer to a field of the response before, and adds the fold to that field.
        Case("reuse/folded-first", "9112 2.2",
            "a response that begins with a folded line harms nobody after a good one",
            tuple(step for n in range(8) for step in (get(b"/%d" % n), Await(n + 1))) + (On(1), get(b"/other"),
            Await(1)),
            both(that("exploitable", "the proxy broke down", lambda seen: len(seen.finals()) == 8), gets(200, on=1)),
            finals={0: 8, 1: 1}, level="safety",
            upstream=tuple(each for _ in range(4) for each in (Reply.of(ok(b"hello",
            *(b"X-%d: %s" % (k, b"v" * 100 * k) for k in range(9)))), Reply.of(FOLDED)))),
        Case("reuse/callers-apart", "9112 9.3", "two callers at once get each their own",
            (get(b"/slow"), On(1), AwaitUpstream(heads=1), get(b"/quick"), Await(1), Signal("go"), On(0), Await(1)),
            both(gets(200, body=b"slow"), gets(200, on=1, body=b"GET /quick")),
            upstream=(Reply.of(Gate("go"), ok(b"slow")),), finals={0: 1, 1: 1}),
        Case("reuse/caller-gone", "9112 9.5", "the answer to a caller that has gone reaches no other",
            (get(b"/gone"), AwaitUpstream(heads=1), _leave(), Signal("go"), Pause(0.03), On(1), get(b"/other"),
            Await(1)),
            gets(200, on=1, body=b"GET /other"), upstream=(Reply.of(Gate("go"), ok(b"POISON")),), finals={1: 1}),
        Case("reuse/caller-gone-in-body", "9112 9.5",
            "the rest of an answer to a caller that has gone reaches no other",
            (get(b"/gone"), Await(interim=True), _leave(), Signal("go"), Pause(0.03), On(1), get(b"/other"), Await(1)),
            gets(200, on=1, body=b"GET /other"),
            upstream=(Reply.of(response(b"Content-Length: 60", body=b"h"), Gate("go"), POISON),), finals={1: 1}),
    ]
    return found


def _leave():
    from case import Leave
    return Leave()
