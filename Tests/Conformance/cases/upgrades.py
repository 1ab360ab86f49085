# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""`Upgrade` (RFC 9110 §7.8, RFC 6455): byte-exact both ways if both ends agree, and nothing otherwise. With misbehaving peers the bytes
of a body, of a tunnel and of the next request are never mistaken for one another."""

from case import (
    AFTER, BODY, CLOSE, ECHO, HOST, SMUGGLED, Await, AwaitBytes, AwaitUpstream, Case, HalfClose, Leave, Pause,
    Reply, chunked, get, ok, post, request)
from judge import Want, arrives, bad_gateway, both, either, ends, gets, that

KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
ASK = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", KEY)
ACCEPT = b"HTTP/1.1 101 Switching Protocols\r\nX-Up: 1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
ALL = bytes(range(256)) * 40


def _through(name, about, steps, sent, got, reply=None, **more):
    """A tunnel: those bytes arrive upstream, and those come back."""
    def holds(seen):
        return bool(seen.requests) and seen.requests[0].tunnel == sent
    return Case(
        f"upgrades/{name}", "9110 7.8", about, steps,
        both(gets(101), that("must", "the bytes upstream are not those sent", holds),
            that("must", "the bytes that came back are not those of the upstream",
            lambda seen: got is None or seen.callers[0].rest == got)),
        upstream=(reply or Reply.of(ACCEPT + b"\r\n", ECHO),), level="MUST", contract=True, exempt=(b"rest",), **more)


def agreed():
    no_101 = that("exploitable", "a 101 that the caller did not ask for",
        lambda seen: not any(each.status == 101 for each in seen.callers[0].responses))
    one = get(b"/x", *ASK)
    return [
        Case("upgrades/handshake", "9110 7.8",
            "a handshake arrives with Upgrade and Connection, and its 101 comes back, or it is not forwarded as one",
            (one, Await(1)),
            either(both(gets(101, has=((b"upgrade", b"websocket"),
            (b"sec-websocket-accept", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))),
                         that("must", "Connection: upgrade is missing",
                         lambda seen: b"upgrade" in seen.finals()[0].fields.members(b"connection") and b"upgrade" in seen.requests[0].fields.members(b"connection")
                              and seen.requests[0].fields.one(b"upgrade") == b"websocket")),
                    both(gets(200), that("must", "Upgrade went up",
                    lambda seen: not seen.requests[0].fields.all(b"upgrade")))),
            upstream=(Reply.of(ACCEPT + b"\r\n", ECHO),), house=gets(101), exempt=(b"rest",)),
        _through("echo", "bytes pass both ways", (one, Await(1), b"hello", AwaitBytes(b"HELLO")), b"hello", b"HELLO"),
        _through("binary", "any bytes pass", (one, Await(1), ALL, AwaitUpstream(data=ALL), Pause(0.05)), ALL,
            ALL.upper()),
        _through("http-like", "what looks like HTTP is not read", (one, Await(1), AFTER, AwaitBytes(b"/AFTER")), AFTER,
            AFTER.upper()),
        _through("early-data", "bytes sent with the handshake go through the tunnel",
            (one + b"early", AwaitBytes(b"EARLY")), b"early", b"EARLY"),
        _through("upstream-first", "bytes sent with the 101 come through", (one, AwaitBytes(b"welcome")), b"",
            b"welcome", reply=Reply.of(ACCEPT + b"\r\nwelcome", ECHO)),
        _through("other-protocol", "any protocol passes",
            (get(b"/x", b"Connection: upgrade", b"Upgrade: example/2"), Await(1), b"abc", AwaitBytes(b"ABC")), b"abc",
            b"ABC",
                 reply=Reply.of(ACCEPT.replace(b"websocket", b"example/2") + b"\r\n", ECHO)),
        _through("list", "Connection may name more than upgrade",
            (get(b"/x", b"Connection: keep-alive, Upgrade, x-foo", b"X-Foo: 1", *ASK[1:]), Await(1), b"abc",
            AwaitBytes(b"ABC")), b"abc", b"ABC"),
        _through("case", "upgrade compares in any case",
            (get(b"/x", b"Connection: UPGRADE", b"Upgrade: WebSocket", *ASK[2:]), Await(1), b"abc", AwaitBytes(b"ABC")),
            b"abc", b"ABC"),
        _through("caller-leaves", "what the caller sent before its end arrives",
            (one, Await(1), b"last", AwaitUpstream(data=b"last"), Leave(), Pause(0.05)), b"last", None, finals={}),
        _through("half-close", "an end in one direction does not cut the other",
            (one, Await(1), b"last", HalfClose(), AwaitBytes(b"LAST")), b"last", b"LAST"),
        Case("upgrades/upstream-ends", "9110 7.8", "the upstream's end is the caller's",
            (one, Await(1), AwaitBytes(b"bye")),
            both(gets(101), that("must", "the end did not come through",
            lambda seen: seen.callers[0].rest == b"bye" and seen.callers[0].ended != "open")),
            upstream=(Reply.of(ACCEPT + b"\r\nbye", CLOSE),), contract=True, exempt=(b"rest",), closes=2.0),
        Case("upgrades/refused", "9110 7.8", "an upgrade that the upstream does not want is an exchange like any other",
            (one + AFTER,),
            both(gets(200, body=b"plain"), either(gets(200, number=1, body=b"GET /after"), both(ends(), that(
                "should", "it is ended, and the answer does not say close", lambda seen: seen.finals()[0].says_close())))),
            upstream=(Reply.of(ok(b"plain")),), finals={0: 2}),
        Case("upgrades/refused-next", "9110 7.8", "after a refused upgrade the next request is served, or the connection was ended",
            (one, Await(1), AFTER),
            both(gets(200, body=b"plain"), either(gets(200, number=1, body=b"GET /after"), both(ends(), that(
                "should", "it is ended, and the answer does not say close", lambda seen: seen.finals()[0].says_close())))),
            upstream=(Reply.of(ok(b"plain")),), finals={0: 2}),
        Case("upgrades/refused-403", "9110 7.8", "a refused upgrade reaches the caller", (one,), gets(403, body=b"no"),
            upstream=(Reply.of(ok(b"no", status=b"403 Forbidden")),)),
        Case("upgrades/426", "9110 15.5.22", "a 426 reaches the caller", (get(),), gets(426),
            upstream=(Reply.of(ok(b"no", b"Connection: upgrade", b"Upgrade: example/2",
            status=b"426 Upgrade Required")),)),
        Case("upgrades/1.0", "9110 7.8", "Upgrade in HTTP/1.0 is ignored",
            (b"GET /x HTTP/1.0\r\n" + HOST + b"\r\n".join(ASK) + b"\r\n\r\n",),
            both(arrives(Want(lacks=(b"upgrade",))), no_101)),
        Case("upgrades/not-named", "9110 7.8", "Upgrade that Connection does not name asks for nothing",
            (get(b"/x", b"Upgrade: websocket", *ASK[2:]),),
            both(arrives(Want()), that("should", "Upgrade went up",
            lambda seen: not seen.requests[0].fields.all(b"upgrade"))), level="SHOULD"),
        Case("upgrades/no-protocol", "9110 7.8", "Connection: upgrade without Upgrade asks for nothing",
            (get(b"/x", b"Connection: upgrade") + AFTER,),
            both(arrives(Want(), Want(b"/after")), no_101), finals={0: 2}),
        Case("upgrades/empty-protocol", "9110 7.8", "an empty Upgrade asks for nothing",
            (get(b"/x", b"Connection: upgrade", b"Upgrade:") + AFTER,),
            both(arrives(Want(), Want(b"/after")), no_101), finals={0: 2}),
        Case("upgrades/101-unasked", "9110 7.8", "a 101 that nobody asked for is no answer", (get(), Pause(0.1), AFTER),
            both(no_101, bad_gateway()),
            upstream=(Reply.of(ACCEPT + b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON", ECHO),)),
        Case("upgrades/101-unasked-1.0", "9110 7.8", "a 101 that nobody asked for is no answer to HTTP/1.0",
            (b"GET /x HTTP/1.0\r\n" + HOST + b"\r\n",), both(no_101, bad_gateway()),
            upstream=(Reply.of(ACCEPT + b"\r\n", ECHO),)),
        Case("upgrades/101-unasked-post", "9110 7.8",
            "after a 101 that nobody asked for nothing of the caller's passes as it is",
            (b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello", Pause(0.1), AFTER), both(no_101, that(
                 "exploitable", "bytes went through a tunnel",
                 lambda seen: not any(each.tunnel for each in seen.requests))),
                 upstream=(Reply.of(ACCEPT + b"\r\n", ECHO),)),
        Case("upgrades/101-other-protocol", "9110 7.8", "a 101 to another protocol than asked for is no answer",
            (one, Await(1)), either(bad_gateway(), gets(101)),
            house=bad_gateway(), upstream=(Reply.of(ACCEPT.replace(b"websocket", b"h2c") + b"\r\n", ECHO),),
            level="safety", exempt=(b"rest",)),
        Case("upgrades/101-no-upgrade", "9110 7.8", "a 101 that does not say to what is no answer", (one, Await(1)),
            either(bad_gateway(), gets(101)),
            upstream=(Reply.of(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", ECHO),), level="safety", exempt=(b"rest",)),
        Case("upgrades/h2c", "9113 3.1",
            "an upgrade to h2c whose settings Connection names is stripped, refused, or passes whole",
            (get(b"/x", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"),
            Await(1)),
            that("must", "HTTP2-Settings went up",
            lambda seen: not seen.requests or not seen.requests[0].fields.all(b"http2-settings")), level="safety"),
        Case("upgrades/split-reply", "9110 7.8", "a 101 in pieces is one", (one, AwaitBytes(b"welcome")),
            both(gets(101), that("must", "the bytes are not those sent",
            lambda seen: seen.callers[0].rest == b"welcome")),
            upstream=(Reply((BODY, ACCEPT[:40], ACCEPT[40:], b"\r", b"\nwel", b"come", ECHO)),), contract=True,
            exempt=(b"rest",)),
        Case("upgrades/reset", "9110 7.8", "a caller that resets its tunnel ends the upstream's",
            (one, Await(1), b"abc", AwaitBytes(b"ABC"), Leave(reset=True), Pause(0.15)),
            gets(101), upstream=(Reply.of(ACCEPT + b"\r\n", ECHO),), contract=True, exempt=(b"rest",), finals={}),
    ]

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


def odd():
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


def cases():
    return [*agreed(), *odd()]
