# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Forms of the request target (RFC 9112 §3.2): the path is forwarded unchanged, the other forms as the standard says."""

from dataclasses import replace

from case import AFTER, HOST, Case, get, request
from judge import Want, arrives, both, either, gets, nothing_upstream, refused


def _as_is(name, target, level="SHOULD"):
    """A path that must not change on its way (RFC 9110 §7.7 for proxies; signatures of paths and encoded paths need this)."""
    return Case(
        f"targets/{name}", "9110 7.7", f"{target!r} arrives as it is", (get(target) + AFTER,),
        either(refused(), arrives(Want(target), Want(b"/after"))), house=arrives(Want(target), Want(b"/after")),
        level=level, finals={0: 2})


def _unusual(name, target):
    """Not allowed by the grammar, but sent: refused, or as it is."""
    return Case(
        f"targets/{name}", "9112 3.2", f"{target!r} is refused, or arrives as it is", (get(target) + AFTER,),
        either(refused(), arrives(Want(target), Want(b"/after"))), level="safety", finals={0: 2})


def _absolute(name, about, target, wants, host=HOST, section="9112 3.2.2", method=b"GET", level="MUST"):
    return Case(
        f"targets/absolute-{name}", section, about, (request(method + b" " + target, host=host) + AFTER,),
        arrives(*(replace(want, absolute=True) for want in wants), Want(b"/after")), level=level,
        finals={0: len(wants) + 1})


def _either(name, about, target, wants, host=HOST, statuses=(400, 403, 404, 421), section="9112 3.2.2", house=None,
    method=b"GET"):
    return Case(
        f"targets/{name}", section, about, (request(method + b" " + target, host=host),),
        either(refused(*statuses, close=False), arrives(*(replace(want, absolute=True) for want in wants))),
        house=house, level="safety")


def _refused(name, about, target, section="9112 3.2", statuses=(400,), level="MUST", method=b"GET"):
    return Case(f"targets/{name}", section, about, (request(method + b" " + target) + AFTER,),
        refused(*statuses, close=False), level=level,
                finals={0: 1})


def cases():
    evil = b"Host: evil.example\r\n"
    refused_host = refused(421, 400, 403, 404, close=False)
    as_is = [
        ("root", b"/"), ("query", b"/x?a=b&c=d"), ("query-empty", b"/x?"), ("query-only", b"/?"),
            ("query-question", b"/x??a?b"), ("query-slash", b"/x?/../y"),
        ("double-slash", b"/a//b"), ("double-slash-first", b"//evil.example/x"), ("three-slashes", b"///x"),
            ("dot", b"/a/./b"), ("dot-dot", b"/a/../b"),
        ("dot-dot-encoded", b"/a/%2e%2e/b"), ("dot-dot-mixed", b"/a/.%2E/b"), ("dot-dot-above", b"/../../x"),
            ("slash-encoded", b"/a%2Fb"),
        ("slash-encoded-lower", b"/a%2fb"), ("percent-case", b"/%e2%98%83%E2%98%83"),
            ("unreserved-encoded", b"/%41%7e"), ("nul-encoded", b"/a%00b"),
        ("crlf-encoded", b"/a%0d%0aX-A:%20b"), ("space-encoded", b"/a%20b+c"), ("parameters", b"/a;b=c;d/e"),
            ("signs", b"/!$&'()*+,;=:@-._~"),
        ("at-colon", b"/user:password@host"), ("absolute-inside", b"/http://evil.example/"),
            ("trailing-slash", b"/a/b/"), ("trailing-dot", b"/a/b."), ("dot-last", b"/a/.."),
        ("backslash-encoded", b"/a%5c..%5cb"), ("percent-encoded", b"/%2525"),
    ]
    unusual = [
        ("quote", b'/a"b'), ("less", b"/a<b>"), ("braces", b"/a{b}"), ("bar", b"/a|b"), ("caret", b"/a^b"),
            ("backtick", b"/a`b"), ("brackets", b"/a[b]"),
        ("backslash", b"/a\\b"), ("backslash-dots", b"/a\\..\\b"), ("percent-broken", b"/a%zz"),
            ("percent-last", b"/a%"), ("utf-8", "/é☃".encode()),
        ("latin", b"/\xe9"), ("fragment", b"/a#b"), ("percent-u", b"/%u002e"), ("overlong", b"/%c0%ae%c0%ae/x"),
    ]
    found = [_as_is(name, target) for name, target in as_is] + [_unusual(name, target) for name, target in unusual]
    found += [
        _as_is("4000-bytes", b"/" + b"p" * 2000 + b"?" + b"q" * 2000),
        _absolute("form", "absolute-form is read", b"http://localhost/x?y", (Want(b"/x?y"),)),
        _absolute("upper-case", "scheme and host compare in any case", b"HTTP://LOCALHOST/X", (Want(b"/X"),),
            host=b"Host: LOCALHOST\r\n"),
        _absolute("no-path", "an empty path is /", b"http://localhost", (Want(b"/"),)),
        _absolute("no-path-query", "an empty path before a query is /", b"http://localhost?y", (Want(b"/?y"),)),
        _absolute("dots", "the path of absolute-form stays as it is", b"http://localhost/a/../%2e/b",
            (Want(b"/a/../%2e/b"),), level="SHOULD"),
        _either("absolute-other-host-field", "the target's host counts, not the Host field's", b"http://localhost/x",
            (Want(),), host=b"Host: other.localhost\r\n"),
        _either("absolute-evil-host-field", "the target's host counts, and Host is replaced", b"http://localhost/x",
            (Want(),), host=evil),
        Case("targets/absolute-evil", "9112 3.2.2", "a target's host that is not ours is not served as ours",
            (request(b"GET http://evil.example/x"),),
            either(refused_host, arrives(Want(None))),
            house=both(refused_host, nothing_upstream()), level="safety"),
        Case("targets/absolute-evil-https", "9112 3.2.2",
            "a target's host that is not ours is not served as ours, whatever its scheme",
            (request(b"GET https://evil.example/x"),),
            either(refused_host, arrives(Want(None))),
            house=both(refused_host, nothing_upstream()), level="safety"),
        _either("absolute-https", "https over a plain connection is refused, or read", b"https://localhost/x",
            (Want(),)),
        _either("absolute-ftp", "another scheme is refused, or read", b"ftp://localhost/x", (Want(),)),
        _either("absolute-port", "a port in the target is read, or refused", b"http://localhost:1/x", (Want(),),
            host=b"Host: localhost:1\r\n"),
        _either("absolute-userinfo", "user information is refused, or goes no further", b"http://user:pw@localhost/x",
            (Want(),), section="9110 4.2.4"),
        _either("absolute-userinfo-evil", "user information hides no host", b"http://localhost@evil.example/x", (),
            statuses=(400, 403, 404, 421), section="9110 4.2.4",
                house=both(refused_host, nothing_upstream())),
        _either("absolute-fragment", "a fragment in absolute-form is refused, or ignored", b"http://localhost/x#y",
            (Want(None),)),
        _refused("absolute-no-host", "an empty host is refused", b"http:///x", section="9110 4.2.1",
            statuses=(400, 421)),
        _refused("absolute-port-word", "a port that is no number is refused", b"http://localhost:x/y",
            statuses=(400, 421), level="SHOULD"),
        _refused("absolute-space", "a broken authority is refused", b"http://[::1/x", statuses=(400, 421),
            level="SHOULD"),
        _refused("absolute-no-slashes", "http: without // is refused", b"http:/x", level="SHOULD", statuses=(400, 421)),
        _refused("authority", "authority-form is for CONNECT only", b"localhost:80", section="9112 3.2.3",
            statuses=(400, 421)),
        _refused("host-only", "a name is no target", b"localhost", statuses=(400,)),
        _refused("relative", "a target without a slash is refused", b"x/y", statuses=(400,), level="SHOULD"),
        _refused("dot-relative", "a target of dots is refused", b"../x", statuses=(400,), level="SHOULD"),
        _refused("query-alone", "a query alone is refused", b"?y", statuses=(400,), level="SHOULD"),
        _refused("backslash-first", "a backslash is no slash", b"\\x", statuses=(400,), level="SHOULD"),
        _refused("at-first", "a target that would move the upstream's host is refused", b"@evil.example/x",
            statuses=(400,), level="SHOULD"),
        _refused("colon-first", "a target that would change the upstream's port is refused", b":80/x", statuses=(400,),
            level="SHOULD"),
        _refused("dot-first", "a target that would lengthen the upstream's host is refused", b".evil.example/x",
            statuses=(400,), level="SHOULD"),
        _refused("asterisk-get", "asterisk-form is for OPTIONS only", b"*", section="9112 3.2.4"),
        _refused("asterisk-post", "asterisk-form is for OPTIONS only", b"*", section="9112 3.2.4", method=b"POST"),
        _refused("asterisk-path", "an asterisk with a path is no form", b"*/x", section="9112 3.2.4", method=b"OPTIONS",
            level="SHOULD"),
        Case("targets/options-asterisk", "9110 9.3.7", "OPTIONS * is answered here, or asked as * upstream",
            (request(b"OPTIONS *") + AFTER,),
            either(arrives(Want(b"*"), Want(b"/after")), both(arrives(Want(b"/after"), statuses=(200, 200))),
            both(arrives(Want(b"/after"), statuses=(204, 200))),
                    refused(400, 501, 405, close=False)),
            house=gets(200, 204), level="SHOULD", finals={0: 2}),
        Case("targets/options-absolute", "9112 3.2.4",
            "OPTIONS for a whole host is asked as * or / upstream, or answered here",
            (request(b"OPTIONS http://localhost"),),
            either(arrives(Want(b"*")), arrives(Want(b"/", absolute=True)), both(nothing_upstream(), gets(200, 204))),
            level="MUST"),
        Case("targets/options-path", "9110 9.3.7", "OPTIONS for a path arrives", (request(b"OPTIONS /x"),),
            arrives(Want(method=b"OPTIONS"))),
    ]
    return found
