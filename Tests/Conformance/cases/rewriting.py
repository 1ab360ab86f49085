# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Names of the upstream in a response become names of the listener: otherwise a caller that follows a redirect bypasses
the proxy. Only countersign promises this."""

from case import Case, Reply, get, ok
from judge import both, gets, that


def _named(lane_port, text):
    return text.replace(b"UPSTREAM", b"127.0.0.1:%d" % lane_port)


def _field(seen, name):
    return [value for answer in seen.finals() for value in answer.fields.all(name)]


def _local(seen, path):
    """The ways to name a path of the listener's."""
    return (path, b"http://localhost" + path, b"http://localhost:%d" % seen.address[1] + path,
        b"http://127.0.0.1:%d" % seen.address[1] + path)


def _case(name, about, line, holds, status=b"302 Found", host=b"localhost:PORT", contract=True):
    """`line` may hold UPSTREAM, the upstream's authority; the caller names the listener with its port."""
    def ask(lane):
        lane.upstream.script.replies = (Reply.of(ok(b"", _named(lane.upstream.port, line), status=status)),)
        return get(b"/x").replace(b"Host: localhost", b"Host: " + host.replace(b"PORT", b"%d" % lane.address[1]))
    return Case(f"rewriting/{name}", "DESIGN 1.6", about, (ask,),
        both(gets(int(status[:3])), that("must", "the field is not as it should be", holds)), contract=contract,
        level="safety")


def _becomes(name, value, path, field=b"Location", about=None):
    return _case(name, about or f"{field.decode()}: {value.decode()} names the listener", field + b": " + value,
        lambda seen: len(_field(seen, field.lower())) == 1 and _field(seen, field.lower())[0] in _local(seen, path))


def _stays(name, value, field=b"Location"):
    return _case(name, f"{field.decode()}: {value.decode()} stays as it is", field + b": " + value,
        lambda seen: _field(seen, field.lower()) == [_named(seen.upstream_port, value)])


def _cookie(name, about, value, holds):
    return _case(f"cookie-{name}", about, b"Set-Cookie: " + value,
        lambda seen: len(_field(seen, b"set-cookie")) == 1 and holds(_attributes(_field(seen, b"set-cookie")[0])),
        status=b"200 OK")


def _attributes(value):
    first, *rest = [part.strip() for part in value.split(b";")]
    found = {b"": first}
    for each in rest:
        key, _, text = each.partition(b"=")
        found[key.strip().lower()] = text.strip()
    return found


def cases():
    return [
        _becomes("location", b"http://UPSTREAM/y", b"/y"),
        _case("location-query", "only the beginning of Location is rewritten", b"Location: http://UPSTREAM/y?a=b#z",
            lambda seen: _field(seen, b"location")[0] in _local(seen, b"/y?a=b#z")),
        _becomes("location-root", b"http://UPSTREAM/", b"/"),
        _becomes("location-case", b"HTTP://UPSTREAM/y", b"/y"),
        _case("location-no-path", "an empty path names the listener, too", b"Location: http://UPSTREAM",
            lambda seen: _field(seen, b"location")[0] in _local(seen, b"") + _local(seen, b"/")),
        _case("location-scheme-relative", "a location without a scheme names the listener, too",
            b"Location: //UPSTREAM/y", lambda seen: _field(seen, b"location")[0] in _local(seen, b"/y") or
              _field(seen, b"location")[0] in (b"//localhost:%d/y" % seen.address[1],)),
        _stays("location-path", b"/y?z"),
        _stays("location-relative", b"../y"),
        _stays("location-elsewhere", b"https://other.example/y"),
        _stays("location-other-port", b"http://127.0.0.1:1/y"),
        _stays("location-longer-port", b"http://UPSTREAM1/y"),
        _stays("location-longer-host", b"http://UPSTREAM.evil.example/y"),
        _stays("location-user", b"http://UPSTREAM@evil.example/y"),
        _stays("location-inside", b"http://other.example/?http://UPSTREAM/y"),
        _stays("location-empty", b""),
        _case("location-201", "Location of a 201 is rewritten, too", b"Location: http://UPSTREAM/new",
            lambda seen: _field(seen, b"location")[0] in _local(seen, b"/new"), status=b"201 Created"),
        _case("location-follows-host", "the listener is called as the caller called it", b"Location: http://UPSTREAM/y",
              lambda seen: _field(seen, b"location")[0] in (b"/y", b"http://a.localhost:%d/y" % seen.address[1]),
              host=b"a.localhost:PORT"),
        _case("content-location", "Content-Location is rewritten", b"Content-Location: http://UPSTREAM/y",
            lambda seen: _field(seen, b"content-location")[0] in _local(seen, b"/y"), status=b"200 OK"),
        _case("refresh", "Refresh is rewritten", b"Refresh: 0; url=http://UPSTREAM/y",
            lambda seen: _field(seen, b"refresh")[0].replace(b" ", b"").lower().partition(b"url=")[2] in _local(seen,
            b"/y"), status=b"200 OK"),
        _case("refresh-plain", "Refresh without an address stays", b"Refresh: 5",
            lambda seen: _field(seen, b"refresh") == [b"5"], status=b"200 OK"),
        _cookie("plain", "a cookie without attributes stays", b"a=b", lambda found: found == {b"": b"a=b"}),
        _cookie("domain", "a Domain that names the upstream goes", b"a=b; Domain=127.0.0.1; Path=/",
            lambda found: b"domain" not in found and found[b""] == b"a=b"),
        _cookie("secure", "Secure goes, as the caller speaks plain HTTP", b"a=b; Secure; HttpOnly",
            lambda found: b"secure" not in found and b"httponly" in found),
        _cookie("path", "a Path stays where both paths are the same", b"a=b; Path=/y",
            lambda found: found.get(b"path") == b"/y"),
        _cookie("value-kept", "the value is not touched", b"a=Secure=Domain=127.0.0.1; SameSite=Lax; Max-Age=5",
            lambda found: found[b""] == b"a=Secure=Domain=127.0.0.1" and
                found.get(b"samesite") == b"Lax" and found.get(b"max-age") == b"5"),
        _cookie("case", "attributes compare in any case", b"a=b; SECURE; dOmAiN=127.0.0.1",
            lambda found: b"secure" not in found and b"domain" not in found),
    ]
