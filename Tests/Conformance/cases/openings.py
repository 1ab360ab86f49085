# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Bytes before a request line (RFC 9112 §2.2), and bytes that are not HTTP at all."""

from case import AFTER, SMUGGLED, Case, HalfClose, Pause, get, post
from judge import Want, arrives, either, nothing_upstream, refused, that


def _passes(name, about, *sent, wants=(Want(),), level="SHOULD", finals=1):
    return Case(f"openings/{name}", "9112 2.2", about, sent, arrives(*wants), level=level, finals={0: finals})


def _either(name, about, sent, wants=(Want(),), house=None):
    return Case(f"openings/{name}", "9112 2.2", about, (sent,), either(refused(silent=True), arrives(*wants)),
        house=house, level="safety",
                finals={0: len(wants)})


def _garbage(name, about, sent, statuses=(400, 505), level="SHOULD"):
    return Case(f"openings/{name}", "9112 2.2", about, (sent,), refused(*statuses, silent=True), level=level,
        closes=1.5)


CLIENT_HELLO = bytes.fromhex("16030100a5010000a10303") + bytes(range(32)) + bytes.fromhex(
    "20") + bytes(range(32)) + bytes.fromhex("0008130113021303c02f0100") + b"\x00\x05\x00\x0d\x00\x0a" + b"\r\n\r\n" + bytes(60)


def cases():
    return [
        _passes("empty-line", "one empty line before a request is ignored", b"\r\n" + get()),
        _passes("empty-line-apart", "one empty line before a request is ignored, sent by itself too", b"\r\n",
            Pause(0.03), get()),
        _passes("empty-line-split", "an empty line in two pieces is ignored", b"\r", Pause(0.02), b"\n" + get()),
        _passes("empty-line-after-post", "an empty line after a body is ignored",
            post(b"hello\r\n" + AFTER, b"Content-Length: 5"),
                wants=(Want(body=b"hello"), Want(b"/after")), finals=2),
        _passes("empty-line-after-get", "an empty line between requests is ignored", get() + b"\r\n" + AFTER,
            wants=(Want(), Want(b"/after")), finals=2),
        _either("empty-lines", "several empty lines are ignored, or refused", b"\r\n" * 4 + get()),
        _either("empty-lines-many", "100,000 empty lines are ignored, or refused", b"\r\n" * 100_000 + get()),
        _either("lf", "a bare LF before a request is ignored, or refused", b"\n" + get()),
        _either("cr", "a bare CR before a request is ignored, or refused", b"\r" + get()),
        _either("cr-cr-lf", "CR CR LF before a request is ignored, or refused", b"\r\r\n" + get()),
        _either("space-line", "a line of one space is ignored, or refused", b" \r\n" + get()),
        _either("space", "a space before the method is skipped, or refused", b" " + get()),
        _either("tab", "a tab before the method is skipped, or refused", b"\t" + get()),
        _garbage("nul", "a NUL before the method is refused", b"\x00" + get()),
        _garbage("byte-order-mark", "a byte order mark before the method is refused", b"\xef\xbb\xbf" + get()),
        _garbage("word-line", "a line that is no request line is refused", b"hello\r\n\r\n" + AFTER),
        _garbage("response", "a response is no request", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + AFTER),
        _garbage("field", "a field line is no request line", b"Host: localhost\r\n\r\n" + AFTER),
        _garbage("tls", "a TLS handshake is no request", CLIENT_HELLO),
        Case("openings/http-2-preface", "9113 3.4", "the preface of HTTP/2 is no request for the upstream",
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" + SMUGGLED,), nothing_upstream(),
            closes=1.5, level="MUST",
            house=refused(505, 400, silent=True), exempt=(b"rest",), finals={}),
        _garbage("binary", "bytes that are nothing are refused", bytes(range(128, 256)) * 40 + b"\r\n\r\n"),
        _garbage("smtp", "mail is refused", b"EHLO localhost\r\nMAIL FROM:<a@b>\r\n\r\n"),
        _garbage("json", "JSON is refused", b'{"jsonrpc":"2.0","method":"x"}\r\n\r\n'),
        _garbage("proxy-protocol", "a PROXY line is refused where nobody asked for it",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" + get()),
        Case("openings/proxy-protocol-2", "safety", "the binary PROXY preface is refused or ignored as garbage",
            (b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x7f\x00\x00\x01\x7f\x00\x00\x01\x00\x50\x00\x50" + get(),),
            refused(silent=True), level="safety", closes=1.5),
        Case("openings/nothing", "9112 9.3", "a connection without a request ends without one upstream", (HalfClose(),),
            nothing_upstream(),
            finals={}, closes=2.0, level="safety"),
        Case("openings/half-a-head", "9112 8", "half a head and a half-close is no request",
            (b"GET /x HTTP/1.1\r\nHost: local", Pause(0.03), HalfClose()),
            nothing_upstream(), finals={}, closes=2.0, level="MUST"),
        Case("openings/head-but-last-line", "9112 8", "a head without its empty line is no request",
            (b"GET /x HTTP/1.1\r\nHost: localhost\r\n", Pause(0.03), HalfClose()),
            nothing_upstream(), finals={}, closes=2.0, level="MUST"),
        Case("openings/head-but-last-lf", "9112 8", "a head without its last LF is no request",
            (b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r", Pause(0.03), HalfClose()),
            that("must", "a request reached the upstream", lambda seen: not seen.requests), finals={}, closes=2.0,
            level="MUST"),
    ]
