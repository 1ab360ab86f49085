# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""`Upgrade` with misbehaving peers (RFC 9110 §7.8): the bytes of a body, of a tunnel and of the next request are never
mistaken for one another."""

from case import AFTER, BODY, CLOSE, ECHO, SMUGGLED, Await, AwaitBytes, Case, Pause, Reply, chunked, get, ok, post, request
from judge import Want, arrives, bad_gateway, both, either, gets, that

from .upgrades import ACCEPT, ASK

HANDSHAKE = get(b"/x", *ASK)
LENGTH = b"Content-Length: %d"
ONLY = that("exploitable", "a body or a tunnel was taken for a request",
    lambda seen: all(each.target in (b"/x", b"/after") for each in seen.requests) and len(seen.requests) <= 2)
ENDED_OR_NEXT = either(gets(200, number=1, body=b"GET /after"),
    that("must", "neither answered nor ended",
    lambda seen: len(seen.finals()) == 1 and seen.callers[0].ended != "open"))


def _switched(name, about, reply, *rule, send=HANDSHAKE, house=None):
    """An odd 101: refused, or a tunnel that carries exactly the bytes after its head."""
    return Case(f"upgrades/{name}", "9110 7.8", about, (send, Await(1), Pause(0.05)),
        either(bad_gateway(), both(gets(101), that("exploitable", "the tunnel's bytes are not those sent",
            lambda seen: seen.callers[0].rest == b"POISON"), *rule)), upstream=(Reply.of(reply, ECHO),), level="safety",
        house=house, exempt=(b"rest", b"response", b"poison"))


def cases():
    body = b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n0\r\n\r\n"
    accept = ACCEPT[:-2]
    return [
        Case("upgrades/post-refused", "9110 7.8", "the body of a refused upgrade is a body",
            (post(SMUGGLED, LENGTH % len(SMUGGLED), *ASK) + AFTER,),
            either(both(gets(400, 501), ONLY), both(gets(200, body=b"plain"), ONLY, ENDED_OR_NEXT,
                that("must", "the body did not arrive", lambda seen: seen.requests[0].body.data == SMUGGLED))),
            upstream=(Reply.of(ok(b"plain")),), finals={0: 2}),
        Case("upgrades/post-chunked-refused", "9110 7.8", "the chunked body of a refused upgrade is a body",
            (chunked(body, *ASK) + AFTER,),
            either(both(gets(400, 501), ONLY), both(gets(200, body=b"plain"), ONLY, ENDED_OR_NEXT,
                that("must", "the body did not arrive", lambda seen: seen.requests[0].body.data == SMUGGLED))),
            upstream=(Reply.of(ok(b"plain")),), finals={0: 2}),
        Case("upgrades/post-accepted", "9110 7.8",
            "the body of an accepted upgrade is a body, and the tunnel begins behind it",
            (post(b"hello", LENGTH % 5, *ASK), Await(1), b"more", Pause(0.05)),
            either(gets(400, 501, 502, 200), both(gets(101),
            that("exploitable", "body and tunnel are not told apart", lambda seen:
                seen.requests[0].body.data == b"hello" and seen.requests[0].tunnel == b"more"))),
            upstream=(Reply.of(ACCEPT + b"\r\n", ECHO),), exempt=(b"rest",), level="safety"),
        Case("upgrades/refused-with-early-bytes", "9110 7.8", "bytes behind a refused handshake are the next request",
            (HANDSHAKE + AFTER,), both(gets(200, body=b"plain"), ONLY, ENDED_OR_NEXT),
            upstream=(Reply.of(ok(b"plain")),),
            finals={0: 2}),
        Case("upgrades/refused-with-binary", "9110 7.8",
            "bytes behind a refused handshake that are no request end the connection",
            (HANDSHAKE, Await(1), b"\x81\x85\x00\x00\x00\x00hello\r\n\r\n" + AFTER, Pause(0.05)),
            both(gets(200, body=b"plain"), that("exploitable", "a frame was skipped, and what follows it read",
                lambda seen: len(seen.requests) == 1)), upstream=(Reply.of(ok(b"plain")),), closes=1.0),
        Case("upgrades/refused-slowly", "9110 7.8", "what is sent before the answer to a handshake is not lost",
            (HANDSHAKE, Pause(0.03), AFTER), both(gets(200, body=b"plain"), ONLY, ENDED_OR_NEXT),
            upstream=(Reply.of(Pause(0.1), ok(b"plain")),), finals={0: 2}),
        Case("upgrades/expect", "9110 10.1.1", "an expectation beside an upgrade: the body crosses once",
            (post(b"", LENGTH % 5, b"Expect: 100-continue", *ASK), Await(interim=True, seconds=1.5), b"hello"),
            either(gets(417, 400, 501), arrives(Want(body=b"hello"))), level="safety"),
        Case("upgrades/close", "9110 7.8", "close beside upgrade: a tunnel, or an answer and the end",
            (get(b"/x", b"Connection: close, Upgrade", *ASK[1:]), Await(1)), either(gets(101), gets(200), gets(400)),
            upstream=(Reply.of(ACCEPT + b"\r\n", ECHO),), level="safety", exempt=(b"rest",)),
        Case("upgrades/second-in-line", "9110 7.8", "a handshake behind another request waits for its turn",
            (get(b"/first") + HANDSHAKE + b"early", AwaitBytes(b"EARLY")),
            both(gets(200, body=b"first"), gets(101, number=1), that("must", "the tunnel's bytes are lost",
                lambda seen: seen.callers[0].rest == b"EARLY")),
            upstream=(Reply.of(Pause(0.05), ok(b"first")), Reply.of(ACCEPT + b"\r\n", ECHO)), finals={0: 2},
            contract=True,
            exempt=(b"rest",)),
        Case("upgrades/head", "9110 7.8", "HEAD asks for no tunnel that could hold an answer's body",
            (request(b"HEAD /x", *ASK), Await(1)), either(gets(101), gets(200, 502, 400, 501)),
            upstream=(Reply.of(ACCEPT + b"\r\n", ECHO),), methods={0: ["HEAD"]}, level="safety", exempt=(b"rest",)),
        Case("upgrades/interim-first", "9110 15.2", "a 103 before the 101 is none",
            (HANDSHAKE, AwaitBytes(b"welcome")), both(gets(101), that("must", "the bytes are not those sent",
                lambda seen: seen.callers[0].rest == b"welcome")),
            upstream=(Reply.of(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ACCEPT + b"\r\nwelcome", ECHO),),
            contract=True, exempt=(b"rest",)),
        _switched("101-length", "a length in a 101 means nothing", accept + b"\r\nContent-Length: 3\r\n\r\nPOISON",
            that("must", "Content-Length in a 101", lambda seen: not seen.finals()[0].fields.all(b"content-length"))),
        _switched("101-chunked", "a coding in a 101 means nothing",
            accept + b"\r\nTransfer-Encoding: chunked\r\n\r\nPOISON",
            that("must", "Transfer-Encoding in a 101",
            lambda seen: not seen.finals()[0].fields.all(b"transfer-encoding"))),
        _switched("101-1.0", "a 101 of HTTP/1.0", accept.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n\r\nPOISON"),
        _switched("101-two-protocols", "a 101 to two protocols", accept + b"\r\nUpgrade: h2c\r\n\r\nPOISON"),
        _switched("101-bare-cr", "a 101 with a bare CR", accept + b"\r\nX-A: b\rX-B: c\r\n\r\nPOISON",
            that("exploitable", "a CR went through", lambda seen: b"b\rX" not in seen.callers[0].received)),
        _switched("101-cookie", "a 101 may set a cookie", accept + b"\r\nSet-Cookie: a=b\r\n\r\nPOISON"),
        Case("upgrades/101-then-http", "9110 7.8", "what looks like a second answer in a tunnel is the tunnel's",
            (HANDSHAKE, AwaitBytes(b"POISON")), both(gets(101), that("must", "the bytes are not those sent",
                lambda seen: seen.callers[0].rest == b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON")),
            upstream=(Reply.of(ACCEPT + b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON", ECHO),),
            contract=True,
            exempt=(b"rest",)),
        Case("upgrades/head-refused-half", "9112 8", "half a head in answer to a handshake is 502",
            (HANDSHAKE, Await(1)),
            bad_gateway(), upstream=(Reply((BODY, b"HTTP/1.1 101 Switch", CLOSE)),), level="MUST", sticky=True),
        Case("upgrades/garbage", "9112 4", "garbage in answer to a handshake is 502", (HANDSHAKE, Await(1)),
            bad_gateway(),
            upstream=(Reply((BODY, b"POISON POISON\r\n\r\n")),), level="MUST", sticky=True, contract=True),
        Case("upgrades/response-smuggle", "9110 7.8",
            "after a refused handshake the upstream's connection serves nobody else what is left over",
            (HANDSHAKE, Await(1), Pause(0.02), get(b"/after"), Await(2)),
            both(gets(200, body=b"plain"), ENDED_OR_NEXT),
            upstream=(Reply.of(ok(b"plain") + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"),), finals={0: 2}),
        Case("upgrades/no-key", "6455 4.2.1", "a handshake without a key is the upstream's to refuse, not ours",
            (get(b"/x", *ASK[:3]),), either(gets(400, number=0), arrives(Want())), level="safety"),
    ]
