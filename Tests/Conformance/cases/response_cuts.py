# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Responses that stop too early or have an invalid body (RFC 9112 §8): they never look complete."""

from case import CLOSE, RESET, Case, Pause, Reply, get, response
from judge import broken

from .response_framing import CHUNKED, OLD


def _cut(name, about, *steps, old=False, finals=1, level="MUST"):
    """A body that stops too early never looks whole."""
    return Case(f"framing/cut-{name}{'-1.0' if old else ''}", "9112 8", about, (OLD if old else get(),),
                broken(severity="exploitable" if level == "MUST" else "must"), upstream=(Reply.of(*steps),),
                sticky=True, closes=2.0, finals={0: finals}, level=level,
                house=broken())


def _bad_chunk(name, about, body):
    return Case(f"framing/chunk-{name}", "9112 7.1", about, (get(),), broken(severity="must"),
        upstream=(Reply.of(response(CHUNKED, body=body), Pause(0.3), CLOSE),),
                sticky=True, closes=2.0)


def cases():
    return [
        _cut("length", "a length that is not reached", response(b"Content-Length: 50", body=b"hello"), CLOSE),
        _cut("length-late", "a length that is not reached, a while later",
            response(b"Content-Length: 50", body=b"hello"), Pause(0.1), CLOSE),
        _cut("length-reset", "a length that a reset leaves unreached", response(b"Content-Length: 50", body=b"hello"),
            Pause(0.05), RESET),
        _cut("length-nothing", "a length of which nothing comes", response(b"Content-Length: 50"), CLOSE),
        _cut("length-one-byte", "a length of which one byte lacks", response(b"Content-Length: 6", body=b"hello"),
            CLOSE),
        _cut("length-megabyte", "a long body of which one byte lacks",
            response(b"Content-Length: 1048577", body=b"m" * 1_048_576), CLOSE),
        _cut("chunked-data", "a chunk that is not whole", response(CHUNKED, body=b"5\r\nhel"), CLOSE),
        _cut("chunked-no-last", "no last chunk", response(CHUNKED, body=b"5\r\nhello\r\n"), CLOSE),
        _cut("chunked-no-last-late", "no last chunk, a while later", response(CHUNKED, body=b"5\r\nhello\r\n"),
            Pause(0.1), CLOSE),
        _cut("chunked-in-last", "a last chunk that is not whole", response(CHUNKED, body=b"5\r\nhello\r\n0"), CLOSE),
        _cut("chunked-no-end", "no empty line behind the last chunk", response(CHUNKED, body=b"5\r\nhello\r\n0\r\n"),
            CLOSE),
        _cut("chunked-in-trailer", "a trailer that is not whole", response(CHUNKED, body=b"5\r\nhello\r\n0\r\nX-T: en"),
            CLOSE),
        _cut("chunked-reset", "chunks that a reset cuts", response(CHUNKED, body=b"5\r\nhello\r\n"), Pause(0.05),
            RESET),
        _cut("chunked-nothing", "chunks of which none comes", response(CHUNKED), CLOSE),
        _cut("close-reset", "a body without length that a reset cuts", response(body=b"hello"), Pause(0.05), RESET,
            level="safety"),
        _cut("length", "a length that is not reached", response(b"Content-Length: 50", body=b"hello"), CLOSE, old=True),
        _cut("chunked-no-last", "no last chunk, to a caller who sees only the end",
            response(CHUNKED, body=b"5\r\nhello\r\n"), CLOSE, old=True, level="safety"),
        _cut("chunked-data", "a chunk that is not whole, to a caller who sees only the end",
            response(CHUNKED, body=b"5\r\nhel"), Pause(0.05), CLOSE, old=True, level="safety"),
        _cut("close-reset", "a reset, to a caller who sees only the end", response(body=b"hello"), Pause(0.05), RESET,
            old=True, level="safety"),
        _bad_chunk("size-word", "a size that is none", b"5\r\nhello\r\ncow\r\n"),
        _bad_chunk("size-minus", "a negative size", b"5\r\nhello\r\n-1\r\n"),
        _bad_chunk("size-overflow", "a size no integer holds", b"5\r\nhello\r\n10000000000000001\r\nx\r\n0\r\n\r\n"),
        _bad_chunk("size-empty", "no size", b"5\r\nhello\r\n\r\n\r\n0\r\n\r\n"),
        _bad_chunk("size-first", "a first size that is none", b"cow\r\nhello\r\n0\r\n\r\n"),
        _bad_chunk("data-longer", "more data than the size says", b"5\r\nhelloXX\r\n0\r\n\r\n"),
    ]
