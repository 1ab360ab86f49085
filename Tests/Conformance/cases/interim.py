# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Interim responses (RFC 9110 §15.2): forwarded to HTTP/1.1 callers, never treated as the final answer."""

from case import AFTER, BODY, CLOSE, HOST, AwaitBytes, Case, Gate, Reply, Signal, get, ok, request
from judge import bad_gateway, both, either, gets, that

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"


def _interims(*statuses):
    def holds(seen):
        return [each.status for each in seen.callers[0].responses if each.interim] == list(statuses)
    return that("must", f"the interim responses are not {statuses}", holds)


def _passes(name, about, interim, *statuses, head=get(), methods=None, level="MUST", rule=()):
    return Case(f"interim/{name}", "9110 15.2", about, (head + AFTER,),
        both(gets(200, body=b"hello" if not methods else b""), gets(200, number=1, body=b"GET /after"),
        _interims(*statuses), *rule),
                upstream=(Reply.of(interim + (ok() if not methods else ok().replace(b"hello", b""))),), level=level,
                finals={0: 2}, methods={0: methods or []})


def _link(seen):
    hints = [each for each in seen.callers[0].responses if each.status == 103]
    return hints and hints[0].fields.one(b"link") == b"</a.css>; rel=preload"


def cases():
    old = b"GET /x HTTP/1.0\r\n" + HOST + b"\r\n"
    return [
        _passes("103", "a 103 is forwarded, with its fields", HINTS, 103,
            rule=(that("must", "its Link is lost", _link),)),
        _passes("103-twice", "two 103 are forwarded", HINTS * 2, 103, 103),
        _passes("102", "a 102 is forwarded", b"HTTP/1.1 102 Processing\r\n\r\n", 102),
        _passes("199", "an interim response that nobody knows is forwarded", b"HTTP/1.1 199 Odd\r\nX-A: b\r\n\r\n",
            199),
        _passes("several", "interim responses keep their order",
            b"HTTP/1.1 102 Processing\r\n\r\n" + HINTS + b"HTTP/1.1 102 Processing\r\n\r\n", 102, 103, 102),
        _passes("head", "an interim response to HEAD is no answer", HINTS, 103, head=request(b"HEAD /x"),
            methods=["HEAD", "GET"]),
        Case("interim/100-unasked", "9110 15.2",
            "a 100 that nobody asked for is forwarded or dropped, and is no answer", (get() + AFTER,),
            both(gets(200, body=b"hello"), gets(200, number=1, body=b"GET /after")),
            upstream=(Reply.of(b"HTTP/1.1 100 Continue\r\n\r\n" + ok()),), finals={0: 2}),
        Case("interim/at-once", "9110 15.2", "a 103 does not wait for the answer",
            (get(), AwaitBytes(b" 103 ", seconds=1.5), Signal("answer")),
            both(gets(200, body=b"hello"), _interims(103)), upstream=(Reply.of(HINTS, Gate("answer"), ok()),)),
        Case("interim/1.0", "9110 15.2", "a caller of HTTP/1.0 gets none", (old,),
            both(gets(200, body=b"hello"), _interims()), upstream=(Reply.of(HINTS + ok()),)),
        Case("interim/with-length", "9112 6.3", "an interim response has no body, whatever it says", (get() + AFTER,),
            either(bad_gateway(), both(gets(200, body=b"hello"), gets(200, number=1, body=b"GET /after"),
                                        that("must", "Content-Length in a 1xx",
                                        lambda seen: not any(each.interim and each.fields.all(b"content-length") for each in seen.callers[0].responses)))),
            upstream=(Reply.of(HINTS.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + ok()),), finals={0: 2}),
        Case("interim/with-coding", "9112 6.1", "an interim response has no chunks, whatever it says", (get() + AFTER,),
            either(bad_gateway(), both(gets(200, body=b"hello"), gets(200, number=1, body=b"GET /after"),
                                        that("must", "Transfer-Encoding in a 1xx",
                                        lambda seen: not any(each.interim and each.fields.all(b"transfer-encoding") for each in seen.callers[0].responses)))),
            upstream=(Reply.of(HINTS.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n") + ok()),),
            finals={0: 2}),
        Case("interim/many", "safety", "a thousand interim responses end in an answer", (get(),),
            either(gets(200, body=b"hello"), bad_gateway()),
            upstream=(Reply.of(HINTS * 1000 + ok()),), level="safety"),
        Case("interim/only", "9110 15.2", "interim responses and an end are no answer", (get(),), bad_gateway(),
            upstream=(Reply.of(HINTS, CLOSE),), sticky=True),
        Case("interim/split", "9110 15.2", "an interim response in pieces is one", (get(),),
            both(gets(200, body=b"hello"), _interims(103)),
            upstream=(Reply((BODY, HINTS[:20], HINTS[20:], ok())),)),
        Case("interim/invalid-field", "9110 5.5", "a CR in a field of an interim response reaches nobody", (get(),),
            either(bad_gateway(), both(gets(200, body=b"hello"),
            that("exploitable", "a CR went through", lambda seen: b"b\rX" not in seen.callers[0].received))),
            upstream=(Reply.of(HINTS.replace(b"\r\n\r\n", b"\r\nX-A: b\rX-B: c\r\n\r\n") + ok()),)),
    ]
