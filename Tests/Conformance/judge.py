# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Predicates over the recorded bytes. Each returns the faults that it finds; an empty result is acceptable behaviour."""

import re
from dataclasses import dataclass

SEVERITIES = ("should", "must", "exploitable")


@dataclass(frozen=True)
class Finding:
    severity: str
    text: str


@dataclass
class Seen:
    """The records of a case at both ends."""
    case: object
    callers: dict
    script: object
    address: tuple
    upstream_port: int
    contract: bool
    seconds: float = 0.0

    @property
    def requests(self):
        return self.script.requests

    def finals(self, on=0):
        return self.callers[on].finals


def worst(findings):
    return max(findings, key=lambda each: SEVERITIES.index(each.severity)).severity if findings else None


def both(*predicates):
    return lambda seen: [finding for each in predicates for finding in each(seen)]


def either(*predicates):
    """Any of several behaviours; otherwise the findings of the mildest."""
    def check(seen):
        results = [each(seen) for each in predicates]
        if any(not result for result in results):
            return []
        best = min(results, key=lambda result: (SEVERITIES.index(worst(result)), len(result)))
        return [Finding(each.severity, f"none of {len(results)} ways; nearest: {each.text}") for each in best]
    return check


def that(severity, text, condition):
    """A condition of one's own."""
    return lambda seen: [] if condition(seen) else [Finding(severity, text)]


def refused(*statuses, on=0, good=0, close=True, silent=False, severity="must", exact=False, any_error=False):
    """After `good` good ones, an error with one of those statuses (400 if none), and the end of the connection.

    `silent`: ending it without a word is acceptable too. `exact`: another error status breaks a MUST. `any_error`: any."""
    statuses = statuses or (400,)

    def check(seen):
        found, caller = [], seen.callers[on]
        finals = caller.finals
        for each in seen.requests[good:]:
            if each.complete:
                found.append(Finding(severity, f"it was forwarded: {each.method.decode()} {each.target!r}"))
        if len(finals) <= good:
            if not silent or caller.ended == "open":
                found.append(Finding(severity, f"no answer ({caller.ended})"))
            return found
        answer = finals[good]
        if answer.fields.all(b"x-up"):
            return found + [Finding(severity, f"the upstream answered it ({answer.status})")]
        if answer.status < 400:
            return found + [Finding(severity, f"it was answered {answer.status}")]
        if answer.status not in statuses and not any_error:
            found.append(Finding("must" if exact else "should", f"status {answer.status}, not {statuses}"))
        if close:
            if len(finals) > good + 1:
                found.append(Finding("exploitable", f"{len(finals) - good - 1} more responses after the error"))
            if caller.ended == "open":
                found.append(Finding("must", "the connection stays open"))
            if not answer.says_close():
                found.append(Finding("should", "the error does not say Connection: close"))
        return found
    return check


@dataclass(frozen=True)
class Want:
    """A request as it should arrive upstream; `None` is anything."""
    target: bytes = b"/x"
    body: bytes = None
    method: bytes = None
    kind: str = None
    has: tuple = ()
    lacks: tuple = ()
    # The target may go up with scheme and authority, as it came.
    absolute: bool = False

    def _path(self, target):
        if not self.absolute:
            return target
        path = re.sub(rb"^(?i:[a-z]+)://[^/?]*", b"", target)
        return path if path.startswith(b"/") else b"/" + path

    def differences(self, request):
        if self.target is not None and self._path(request.target) != self.target:
            yield "must", f"target {request.target!r}, not {self.target!r}"
        if self.method is not None and request.method != self.method:
            yield "must", f"method {request.method!r}, not {self.method!r}"
        if self.body is not None and request.body.data != self.body:
            yield "exploitable", f"body {request.body.data[:80]!r} of {len(request.body.data)}, not {self.body[:80]!r}"
        if self.kind is not None and request.kind != self.kind:
            yield "must", f"framing {request.kind}, not {self.kind}"
        for name, value in self.has:
            values = request.fields.all(name)
            if value not in values and b", ".join(values) != value:
                yield "must", f"{name.decode()}: {values}, not {value!r}"
        for name in self.lacks:
            if request.fields.all(name):
                yield "must", f"{name.decode()}: {request.fields.all(name)} is there"


def arrives(*wants, closes=None, on=0, statuses=None, severity="must"):
    """Exactly these requests arrive, complete, and each is answered (200 unless said otherwise).

    `closes`: that the connection is then to be ended (True) or kept (False)."""
    statuses = statuses or (200,) * len(wants)

    def check(seen):
        found, caller = [], seen.callers[on]
        if len(seen.requests) != len(wants):
            bad = "exploitable" if len(seen.requests) > len(wants) else severity
            found.append(Finding(bad, f"{len(seen.requests)} requests upstream, not {len(wants)}: {targets(seen)}"))
        for number, (want, request) in enumerate(zip(wants, seen.requests)):
            if not request.complete:
                found.append(Finding(severity, f"request {number} is not complete upstream"))
            found += [Finding(bad, f"request {number}: {text}") for bad, text in want.differences(request)]
        got = tuple(each.status for each in caller.finals)
        if got != tuple(statuses):
            found.append(Finding(severity, f"answered {got}, not {tuple(statuses)}"))
        if closes is True and caller.ended == "open":
            found.append(Finding("must", "the connection stays open"))
        if closes is False and caller.ended != "open":
            found.append(Finding("should", f"the connection is {caller.ended}"))
        return found
    return check


def targets(seen):
    return [f"{each.method.decode()} {each.target.decode('latin-1')[:40]}" for each in seen.requests]


def gets(*statuses, number=0, on=0, body=None, has=(), lacks=(), complete=True, kind=None, minor=1, severity="must",
         body_severity="must"):
    """The final response with that number on that connection."""
    statuses = statuses or (200,)

    def check(seen):
        finals = seen.finals(on)
        if len(finals) <= number:
            return [Finding(severity, f"no response {number} on connection {on} ({seen.callers[on].ended})")]
        answer, found = finals[number], []
        if answer.status not in statuses:
            return [Finding(severity, f"response {number} has status {answer.status}, not {statuses}")]
        if complete and not answer.body.complete:
            found.append(Finding(severity, f"response {number} is not complete"))
        if minor is not None and answer.minor != minor:
            found.append(Finding("must", f"response {number} is HTTP/1.{answer.minor}"))
        if body is not None and answer.body.data != body:
            found.append(Finding(body_severity,
                f"body {answer.body.data[:80]!r} of {len(answer.body.data)}, not {body[:80]!r}"))
        if kind is not None and answer.kind not in kind:
            found.append(Finding("must", f"framed by {answer.kind}, not {kind}"))
        for name, value in has:
            values = answer.fields.all(name)
            if value not in values and b", ".join(values) != value:
                found.append(Finding(severity, f"{name.decode()}: {values}, not {value!r}"))
        for name in lacks:
            if answer.fields.all(name):
                found.append(Finding("must", f"{name.decode()}: {answer.fields.all(name)} is there"))
        return found
    return check


def bad_gateway(on=0, number=0, statuses=(502,), severity="must"):
    """The upstream's answer is withheld, and a gateway's error is sent."""
    return gets(*statuses, on=on, number=number, severity=severity)


def broken(on=0, statuses=(502,), severity="exploitable"):
    """A body that was cut short must not look complete: a gateway's error, or a connection that ends too early."""
    def check(seen):
        caller = seen.callers[on]
        if not caller.finals:
            return [] if caller.ended != "open" else [Finding("must", "nothing comes")]
        answer = caller.finals[0]
        if answer.status in statuses:
            return []
        if answer.body.complete:
            return [Finding(severity, f"the cut body looks complete ({answer.kind}, {caller.ended})")]
        return [] if caller.ended != "open" else [Finding("must", "the caller waits for the rest of a cut body")]
    return check


def ends(on=0, severity="must"):
    return that(severity, "the connection stays open", lambda seen: seen.callers[on].ended != "open")


def stays(on=0, severity="should"):
    return that(severity, "the connection is ended", lambda seen: seen.callers[on].ended == "open")


def nothing_complete(severity="exploitable"):
    """No whole request reaches the upstream."""
    return that(severity, "a whole request reached the upstream",
        lambda seen: not any(r.complete for r in seen.requests))


def nothing_upstream(severity="must"):
    return that(severity, "a request reached the upstream", lambda seen: not seen.requests)


def universal(seen):
    """The rules that hold in each case."""
    found = []
    for number, each in enumerate(seen.requests):
        if b"smuggled" in each.target.lower() and b"smuggled" not in seen.case.exempt:
            found.append(Finding("exploitable", f"the hidden request reached the upstream as request {number}"))
        if each.problem:
            found.append(Finding(_harm(each.problem), f"sent upstream, not valid: {each.problem}"))
        elif len(each.fields.all(b"host")) != 1:
            found.append(Finding("must", f"{len(each.fields.all(b'host'))} Host fields upstream"))
    for stray in seen.script.strays:
        found.append(Finding("must", f"bytes upstream that begin no request: {stray[:60]!r}"))
    for number, caller in seen.callers.items():
        for answer in caller.responses:
            if answer.problem and b"response" not in seen.case.exempt:
                found.append(Finding("must", f"response {answer.status} on connection {number}: {answer.problem}"))
            if b"POISON" in answer.head or (b"POISON" in answer.body.data and b"poison" not in seen.case.exempt):
                found.append(Finding("exploitable", f"bytes of no response were delivered on connection {number}"))
        if caller.rest and b"rest" not in seen.case.exempt:
            found.append(Finding("exploitable",
                f"bytes after the response on connection {number}: {caller.rest[:60]!r}"))
    return found


def _harm(problem):
    """Bytes that another server may read as other fields or as another length are worse than bytes that it can only refuse."""
    return "exploitable" if re.search(r"Content-Length|Transfer-Encoding|chunk|CRLF|\\r|\\n|\\x00", problem) else "must"


def lowered(findings, level):
    """A rule below MUST is broken by a SHOULD at most; harm stays harm."""
    if level == "MUST":
        return findings
    return [Finding("should", each.text) if each.severity == "must" else each for each in findings]


def local_replies(seen):
    """Countersign's own replies: problem documents that say so (DESIGN 1.7)."""
    found = []
    for caller in seen.callers.values():
        for position, answer in enumerate(caller.finals):
            if answer.fields.all(b"x-up") or answer.status < 400 or b"local" in seen.case.exempt:
                continue
            method = caller.methods[position] if position < len(caller.methods) else "GET"
            for name in (b"date", b"content-length", b"proxy-status", b"content-type"):
                if len(answer.fields.all(name)) != 1:
                    found.append(Finding("must",
                        f"local reply {answer.status} has {len(answer.fields.all(name))} {name.decode()}"))
            if answer.fields.one(b"content-type") not in (None, b"application/problem+json"):
                found.append(Finding("must", f"local reply {answer.status} is {answer.fields.one(b'content-type')!r}"))
            if method != "HEAD" and b'"code"' not in answer.body.data:
                found.append(Finding("must", f"local reply {answer.status} has no code"))
            if answer.status == 405 and not answer.fields.all(b"allow"):
                found.append(Finding("must", "405 without Allow (RFC 9110 section 15.5.6)"))
    return found
