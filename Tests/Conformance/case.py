# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""A case: the bytes to send, the upstream's script, and the acceptable outcomes."""

from dataclasses import dataclass, field

# The shape of a good request, and one that must not be answered once the connection's framing is lost.
HOST = b"Host: localhost\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
AFTER = b"GET /after HTTP/1.1\r\nHost: localhost\r\n\r\n"


# Steps of a caller. Bytes are sent on the present connection.
@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Trickle:
    """Bytes in pieces, each in a segment of its own."""
    data: bytes
    size: int = 1
    gap: float = 0.0005


@dataclass(frozen=True)
class Await:
    """Waits for that number of final responses (with `interim`, of any responses), or for the end of the connection."""
    finals: int = 1
    interim: bool = False
    seconds: float = 3.0


@dataclass(frozen=True)
class AwaitBytes:
    """Waits until the caller has received those bytes."""
    data: bytes
    seconds: float = 3.0


@dataclass(frozen=True)
class AwaitUpstream:
    """Waits for that number of requests upstream: their heads, or all of them; or for that number of bytes of a body."""
    heads: int = 0
    complete: int = 0
    data: bytes = b""
    seconds: float = 3.0


@dataclass(frozen=True)
class HalfClose:
    """Says that nothing more will be sent."""


@dataclass(frozen=True)
class Leave:
    """Closes the connection."""
    reset: bool = False


@dataclass(frozen=True)
class On:
    """The following steps use that connection, which is opened if it does not exist yet."""
    number: int


@dataclass(frozen=True)
class Signal:
    """Lets the upstream's `Gate` of that name open."""
    name: str


# Steps of the upstream, beginning when the head of a request is there. Bytes are sent.
@dataclass(frozen=True)
class Gate:
    name: str


@dataclass(frozen=True)
class UpstreamStep:
    name: str


BODY = UpstreamStep("wait for the whole request")
CLOSE = UpstreamStep("close the connection")
RESET = UpstreamStep("reset the connection")
ECHO = UpstreamStep("send back what comes, in capitals, until the end")
SILENCE = UpstreamStep("say nothing")


@dataclass(frozen=True)
class Reply:
    """The upstream's reaction to one request."""
    steps: tuple

    @staticmethod
    def of(*steps, early=False):
        return Reply(steps if early else (BODY,) + steps)


def ok(body=b"hello", *lines, status=b"200 OK"):
    """A good response with a length."""
    return response(b"Content-Length: %d" % len(body), *lines, body=body, status=status)


def response(*lines, body=b"", status=b"200 OK", version=b"HTTP/1.1"):
    head = b"".join(line + b"\r\n" for line in (version + b" " + status, b"X-Up: 1") + lines)
    return head + b"\r\n" + body


def request(line, *lines, body=b"", host=HOST):
    """A request of those lines, `Host` first."""
    return line + b" HTTP/1.1\r\n" + host + b"".join(each + b"\r\n" for each in lines) + b"\r\n" + body


def get(target=b"/x", *lines):
    return request(b"GET " + target, *lines)


def post(body, *lines, target=b"/x"):
    """A POST with those lines and that body, as they are: no length is added."""
    return request(b"POST " + target, *lines, body=body)


def chunked(body, *lines, target=b"/x"):
    """A chunked POST whose body is those bytes, chunk lines and all."""
    return post(body, b"Transfer-Encoding: chunked", *lines, target=target)


@dataclass(frozen=True)
class Case:
    """`accept` and `house` are predicates of `judge`: what RFC 9110 and 9112 allow, and what countersign promises besides."""
    id: str
    section: str
    about: str
    steps: tuple
    accept: object
    upstream: tuple = ()
    # The last of `upstream` holds for all further requests too (an upstream that is asked again).
    sticky: bool = False
    level: str = "MUST"
    house: object = None
    # Only countersign promises it.
    contract: bool = False
    # Final responses to wait for, by connection, and the methods they answer.
    finals: dict = field(default_factory=lambda: {0: 1})
    methods: dict = field(default_factory=dict)
    # The proxy is expected to end the connection: so long is waited for that.
    closes: float = 0.0
    # So long for something that should not come.
    settle: float = 0.04
    # The time in seconds that the proxy may take for the answer.
    timeout: float = 3.0
    # Breaks the rule on purpose that everything upstream be a request of this case.
    exempt: tuple = ()
    # The kind of lane that the case needs.
    lane: str = "plain"

    @property
    def family(self):
        return self.id.split("/")[0]
