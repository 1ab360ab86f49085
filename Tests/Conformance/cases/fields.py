# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The syntax of field lines of requests (RFC 9112 §5, RFC 9110 §5.5), and lines that must pass."""

import re

from case import AFTER, HOST, Case, get
from judge import Want, arrives, both, either, refused, that


def _refused(name, about, *lines, section="9112 5.1", level="MUST", statuses=(400,)):
    return Case(
        f"fields/{name}", section, about, (get(b"/x", *lines) + AFTER,), refused(*statuses), level=level, closes=1.0,
        finals={0: 2})


def _either(name, about, *lines, has=(), lacks=(), section="9110 5.5", strict=True, level="MUST", unfolded=False):
    """Refused, or made harmless; countersign refuses."""
    rule = that("must", "the fold is not one or more spaces", lambda seen: not unfolded or re.fullmatch(
        b"b +c", (seen.requests[0].fields.one(b"x-a") or b"") if seen.requests else b""))
    return Case(
        f"fields/{name}", section, about, (get(b"/x", *lines) + AFTER,),
        either(refused(), both(arrives(Want(has=has, lacks=lacks), Want(b"/after")), rule)),
        house=refused() if strict else None, level=level,
        finals={0: 2})


def _passes(name, about, *lines, has=(), section="9110 5.1", level="MUST"):
    return Case(
        f"fields/{name}", section, about, (get(b"/x", *lines) + AFTER,), arrives(Want(has=has), Want(b"/after")),
        level=level,
        finals={0: 2})


def _order(seen):
    values = [part.strip() for value in seen.requests[0].fields.all(b"x-a") for part in value.split(b",")] if seen.requests else []
    return values == [b"1", b"2", b"3"]


CONTROLS = [("01", b"\x01"), ("08-backspace", b"\x08"), ("0b-vertical-tab", b"\x0b"), ("0c-form-feed", b"\x0c"),
    ("1b-escape", b"\x1b"),
            ("1f", b"\x1f"), ("7f-delete", b"\x7f")]
BAD_NAMES = [
    ("space-inside", b"X A"), ("not-ascii", b"X-\xc3\xa9"), ("latin", b"X-\xe9"), ("parentheses", b"X(A)"),
        ("slash", b"X/A"), ("at", b"X@A"),
    ("quote", b'X"A"'), ("brackets", b"X[A]"), ("braces", b"X{A}"), ("equals", b"X=A"), ("comma", b"X,A"),
        ("semicolon", b"X;A"),
    ("question", b"X?A"), ("less", b"X<A"), ("backslash", b"X\\A"), ("nul", b"X\x00A"), ("control", b"X\x01A"),
        ("delete", b"X\x7fA"),
    ("tab-inside", b"X\tA"), ("byte-order-mark", b"\xef\xbb\xbfX-A"), ("nul-first", b"\x00X-A"), ("bare-cr", b"X\rA"),
]


def cases():
    found = [
        _refused("space-before-colon", "white space between name and colon is refused", b"X-A : b"),
        _refused("tab-before-colon", "white space between name and colon is refused", b"X-A\t: b"),
        _refused("spaces-before-colon", "white space between name and colon is refused", b"X-A  \t : b"),
        _refused("space-before-colon-empty", "white space between name and colon is refused, without a value too",
            b"X-A :"),
        _refused("empty-name", "a field without a name is refused", b": b", section="9112 2.2", level="SHOULD"),
        _refused("colon-only", "a colon alone is refused", b":", section="9112 2.2", level="SHOULD"),
        _refused("no-colon", "a line without a colon is refused", b"X-A", section="9112 2.2", level="SHOULD"),
        _refused("no-colon-request", "a request line is no field", b"GET /smuggled HTTP/1.1", section="9112 2.2",
            level="SHOULD"),
        _either("folded", "a folded line is refused, or becomes a space", b"X-A: b", b" c", section="9112 5.2",
            unfolded=True),
        _either("folded-tab", "a line folded with a tab is refused, or becomes a space", b"X-A: b", b"\tc",
            section="9112 5.2"),
        _either("folded-empty", "a folded line of white space is refused, or becomes a space", b"X-A: b", b" ",
            section="9112 5.2"),
        _either("folded-colon", "a folded line with a colon is no field", b"X-A: b", b" X-B: c", section="9112 5.2",
            lacks=(b"x-b",)),
        _either("folded-host", "a folded Host is no Host", b"X-A: b", b" Host: evil.example", section="9112 5.2"),
        Case("fields/leading-space", "9112 2.2", "white space after the request line is refused, or its lines ignored",
            (b"GET /x HTTP/1.1\r\n X-A: b\r\n" + HOST + b"\r\n" + AFTER,),
            either(refused(), arrives(Want(lacks=(b"x-a",)), Want(b"/after"))),
            house=refused(), finals={0: 2}),
        Case("fields/leading-tab-host", "9112 2.2", "a Host behind white space is none",
            (b"GET /x HTTP/1.1\r\n\tHost: evil.example\r\n" + HOST + b"\r\n" + AFTER,),
            either(refused(), arrives(Want(), Want(b"/after"))),
            house=refused(), finals={0: 2}),
        _either("bare-lf", "a bare LF ends a line, or is refused", b"X-A: b\nX-B: c", section="9112 2.2",
            has=((b"x-b", b"c"),)),
        _either("bare-cr", "a bare CR is refused, or becomes a space", b"X-A: b\rc", section="9112 2.2",
            has=((b"x-a", b"b c"),)),
        _either("bare-cr-field", "a bare CR begins no line", b"X-A: b\rX-B: c", section="9112 2.2", lacks=(b"x-b",)),
        _either("cr-cr-lf", "CR CR LF is refused, or a space at the end of the line", b"X-A: b\r", section="9112 2.2",
            has=((b"x-a", b"b"),)),
        _either("nul", "a NUL is refused, or becomes a space", b"X-A: b\x00c", has=((b"x-a", b"b c"),)),
        _either("nul-last", "a NUL at the end is refused, or becomes a space", b"X-A: b\x00", has=((b"x-a", b"b"),)),
        Case("fields/head-lf-lf", "9112 2.2", "a head of bare LF is read, or refused",
            (b"GET /x HTTP/1.1\nHost: localhost\n\n" + AFTER,),
            either(refused(), arrives(Want(), Want(b"/after"))), house=refused(), finals={0: 2}),
        Case("fields/head-crlf-lf", "9112 2.2", "a head that ends in a bare LF is read, or refused",
            (b"GET /x HTTP/1.1\r\nHost: localhost\r\n\n" + AFTER,),
            either(refused(), arrives(Want(), Want(b"/after"))), house=refused(), finals={0: 2}),
        Case("fields/head-lf-crlf", "9112 2.2", "a line that ends in a bare LF is read, or refused",
            (b"GET /x HTTP/1.1\r\nHost: localhost\n\r\n" + AFTER,),
            either(refused(), arrives(Want(), Want(b"/after"))), house=refused(), finals={0: 2}),
        Case("fields/head-cr-only", "9112 2.2", "bare CR end no line",
            (b"GET /x HTTP/1.1\rHost: localhost\r\r" + b"\r\n\r\n" + AFTER,),
            refused(), closes=1.0, finals={0: 2}),
        _passes("empty-value", "a field may be empty", b"X-Empty:", b"X-B: c", has=((b"x-empty", b""), (b"x-b", b"c"))),
        _passes("empty-value-spaces", "a field of white space is an empty field", b"X-Empty:  \t ",
            has=((b"x-empty", b""),)),
        _passes("white-space-around", "white space around a value is not part of it", b"X-A: \t b c \t ",
            has=((b"x-a", b"b c"),), section="9112 5"),
        _passes("white-space-inside", "white space inside a value stays", b"X-A: b  \t  c",
            has=((b"x-a", b"b  \t  c"),)),
        _passes("no-space", "no space is needed", b"X-A:b", has=((b"x-a", b"b"),)),
        _passes("colons", "a value may hold colons", b"X-A: http://a:b@c:1/::", has=((b"x-a", b"http://a:b@c:1/::"),)),
        _passes("quotes", "quotations stay as they are", b'X-A: "b, \\"c\\"", d', has=((b"x-a", b'"b, \\"c\\"", d'),)),
        _passes("token-signs", "a name may hold every sign of a token", b"!#$%&'*+-.^_`|~0aZ: b",
            has=((b"!#$%&'*+-.^_`|~0az", b"b"),)),
        _passes("underscore", "a name may hold an underscore", b"X_A: b", has=((b"x_a", b"b"),)),
        _passes("digit-first", "a name may begin with a digit", b"0X: b", has=((b"0x", b"b"),)),
        _passes("one-letter", "a name of one letter", b"X: b", has=((b"x", b"b"),)),
        _passes("latin", "bytes above 0x7F pass as they are", b"X-A: caf\xe9", has=((b"x-a", b"caf\xe9"),),
            section="9110 5.5", level="SHOULD"),
        _passes("utf-8", "UTF-8 passes as it is", "X-A: naïve ☃".encode(), has=((b"x-a", "naïve ☃".encode()),),
            section="9110 5.5", level="SHOULD"),
        _passes("8000-bytes", "a value of 8000 bytes passes", b"X-A: " + b"v" * 7900, has=((b"x-a", b"v" * 7900),),
            section="9112 3", level="SHOULD"),
        _passes("80-fields", "80 fields pass", *(b"X-%d: v" % number for number in range(80)), has=((b"x-79", b"v"),),
            level="SHOULD"),
        _passes("percent", "percent signs are not decoded", b"X-A: %0d%0aX-B:%20c", has=((b"x-a", b"%0d%0aX-B:%20c"),)),
        _passes("cookie", "a Cookie passes as it is", b"Cookie: a=b; c=\"d\"; e=f,g",
            has=((b"cookie", b"a=b; c=\"d\"; e=f,g"),)),
        _passes("two-authorizations-scheme", "a caller's Authorization passes where no session applies",
            b"Authorization: Basic eDp5", has=((b"authorization", b"Basic eDp5"),)),
        Case("fields/order", "9110 5.3", "fields of one name keep their order",
            (get(b"/x", b"X-A: 1", b"X-B: z", b"X-A: 2", b"x-a: 3"),),
            that("must", "the order of X-A is lost", _order)),
        Case("fields/100-kib", "6585 5", "a field of 100 KiB is refused, or passes",
            (get(b"/x", b"X-A: " + b"v" * 102_400) + AFTER,),
            either(refused(431, 400, 413), arrives(Want(), Want(b"/after"))), house=refused(431), level="safety",
            finals={0: 2}),
        Case("fields/2000-fields", "6585 5", "2000 fields are refused, or pass",
            (get(b"/x", *(b"X-%d: v" % number for number in range(2000))) + AFTER,),
            either(refused(431, 400, 413), arrives(Want(), Want(b"/after"))), house=refused(431), level="safety",
            finals={0: 2}),
        Case("fields/endless", "6585 5", "a head without end is refused before its megabytes are kept",
            (b"GET /x HTTP/1.1\r\n" + HOST, b"X-A: v\r\n" * 300_000),
            refused(431, 400, 413, silent=True), level="safety", closes=3.0),
        Case("fields/endless-line", "6585 5", "a field line without end is refused before its megabytes are kept",
            (b"GET /x HTTP/1.1\r\n" + HOST + b"X-A: ", b"v" * 2_400_000),
            refused(431, 400, 413, silent=True), level="safety", closes=3.0),
        Case("fields/endless-name", "6585 5", "a field name without end is refused",
            (b"GET /x HTTP/1.1\r\n" + HOST, b"v" * 2_400_000),
            refused(431, 400, 413, silent=True), level="safety", closes=3.0),
    ]
    found += [_either(f"control-{name}", f"the control {value!r} in a value is refused, or kept out of harm",
        b"X-A: b" + value + b"c", level="safety")
              for name, value in CONTROLS]
    found += [_refused(f"name-{name}", f"{value!r} is no field name", value + b": b", section="9112 2.2",
        level="SHOULD") for name, value in BAD_NAMES]
    return found
