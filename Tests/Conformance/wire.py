# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""HTTP/1.1 messages by the letter of RFC 9112, for both ends of the proxy: a message that this reader cannot read
is one that the proxy should not have sent."""

import re
from dataclasses import dataclass, field

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])")
STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)")
# Controls other than CR, LF and NUL may be kept (RFC 9110 §5.5).
FIELD_LINE = re.compile(rb"(" + TOKEN + rb"):[ \t]*((?:[^\x00\r\n \t](?:[^\x00\r\n]*[^\x00\r\n \t])?)?)[ \t]*")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})((?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?)")
DIGITS = re.compile(rb"[0-9]{1,19}")
# Codings under chunked that a gateway may leave as they are.
KNOWN_CODINGS = {b"gzip", b"x-gzip", b"deflate", b"compress", b"x-compress"}


@dataclass
class Fields:
    """Field lines in their order; names compare in any case."""
    lines: list = field(default_factory=list)

    def all(self, name):
        name = name.lower()
        return [value for key, value in self.lines if key.lower() == name]

    def one(self, name):
        values = self.all(name)
        return values[0] if values else None

    def members(self, name):
        """The members of a list-valued field, in lower case, over all its lines."""
        return [part.strip(b" \t").lower() for value in self.all(name) for part in value.split(b",") if part.strip(b" \t")]

    def names(self):
        return [key.lower() for key, _ in self.lines]


@dataclass
class Body:
    """The part of a body read so far: complete if its framing says so."""
    data: bytes = b""
    trailers: Fields = field(default_factory=Fields)
    end: int = 0
    complete: bool = False
    problem: str = None


def parse_fields(block):
    """The field lines of a block that ends in CRLF (or is empty), and the first thing wrong with them."""
    fields, problem = Fields(), None
    for line in block.split(b"\r\n")[:-1]:
        match = FIELD_LINE.fullmatch(line)
        if match:
            fields.lines.append((match.group(1), match.group(2)))
        elif problem is None:
            problem = f"field line {line[:80]!r}"
    return fields, problem


def framing(fields, minor):
    """Returns `(kind, length, problem)` of a message with those fields: kind is none, length or chunked."""
    lengths, codings = fields.all(b"content-length"), fields.members(b"transfer-encoding")
    if fields.all(b"transfer-encoding"):
        if lengths:
            return "chunked", 0, "both Content-Length and Transfer-Encoding"
        if minor == 0:
            return "chunked", 0, "Transfer-Encoding in HTTP/1.0"
        if codings[-1:] != [b"chunked"] or any(coding not in KNOWN_CODINGS for coding in codings[:-1]):
            return "none", 0, f"Transfer-Encoding {b', '.join(codings)!r}"
        return "chunked", 0, None
    if not lengths:
        return "none", 0, None
    if len(lengths) > 1:
        return "length", 0, "several Content-Length"
    if not DIGITS.fullmatch(lengths[0]):
        return "length", 0, f"Content-Length {lengths[0]!r}"
    return "length", int(lengths[0]), None


def read_chunked(data, start):
    """Reads the chunked body that begins there, as far as it has come."""
    body, at = Body(end=start), start
    parts = []
    while True:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            break
        match = CHUNK_LINE.fullmatch(data[at:line_end])
        if not match:
            body.problem = f"chunk line {bytes(data[at:line_end])[:60]!r}"
            break
        size, at = int(match.group(1), 16), line_end + 2
        if size == 0:
            _read_trailers(data, at, body)
            break
        if len(data) < at + size + 2:
            parts.append(data[at:at + size])
            break
        parts.append(data[at:at + size])
        if data[at + size:at + size + 2] != b"\r\n":
            body.problem = "no CRLF after a chunk"
            break
        at += size + 2
    body.data = b"".join(parts)
    return body


def _read_trailers(data, at, body):
    if data[at:at + 2] == b"\r\n":
        body.end, body.complete = at + 2, True
        return
    end = data.find(b"\r\n\r\n", at)
    if end >= 0:
        body.trailers, body.problem = parse_fields(data[at:end + 2])
        body.end, body.complete = end + 4, True


def read_length(data, start, length):
    """Reads the body of that length that begins there, as far as it has come."""
    part = bytes(data[start:start + length])
    return Body(data=part, end=start + len(part), complete=len(part) == length)


@dataclass
class Response:
    """A response as the caller got it."""
    status: int
    minor: int
    reason: bytes
    fields: Fields
    head: bytes
    kind: str
    body: Body
    problem: str = None

    @property
    def interim(self):
        return self.status < 200 and self.status != 101

    def says_close(self):
        options = self.fields.members(b"connection")
        return b"close" in options or self.kind == "close" or (self.minor == 0 and b"keep-alive" not in options)


def parse_response(data, at, method, ended):
    """The response that begins there, or `None` while its head is not complete; `ended`: how the connection ended."""
    head_end = data.find(b"\r\n\r\n", at)
    if head_end < 0:
        return None
    head = bytes(data[at:head_end + 4])
    line, _, block = head.partition(b"\r\n")
    match = STATUS_LINE.fullmatch(line)
    fields, problem = parse_fields(block[:-2])
    if not match:
        return Response(0, 1, b"", fields, head, "close", Body(bytes(data[head_end + 4:]), end=len(data)),
            f"status line {line[:80]!r}")
    minor, status = int(match.group(1)), int(match.group(2))
    kind, length, wrong = framing(fields, minor)
    problem = problem or wrong
    start = head_end + 4
    if method == "HEAD" or status < 200 or status in (204, 304):
        kind, body = "none", Body(end=start, complete=True)
        if status in (204, 304):
            # Content-Length is allowed in 304 (RFC 9110 §8.6), neither in 204.
            forbidden = (b"transfer-encoding", b"content-length") if status == 204 else (b"transfer-encoding",)
            problem = problem or next((f"{name.decode()} in {status}" for name in forbidden if fields.all(name)), None)
    elif kind == "chunked":
        body = read_chunked(data, start)
    elif kind == "length":
        body = read_length(data, start, length)
    else:
        kind, body = "close", Body(bytes(data[start:]), end=len(data), complete=ended == "closed")
    return Response(status, minor, match.group(3), fields, head, kind, body, problem or body.problem)


def parse_responses(data, methods, ended):
    """`(responses, rest)`: all that came, given the methods asked with, in order; `rest` belongs to none of them."""
    found, at, finals = [], 0, 0
    while at < len(data):
        method = methods[finals] if finals < len(methods) else "GET"
        response = parse_response(data, at, method, ended)
        if response is None:
            return found, bytes(data[at:])
        found.append(response)
        if response.status == 101:
            return found, bytes(data[response.body.end:])
        if not response.interim:
            finals += 1
            if not response.body.complete:
                return found, b""
        at = response.body.end
    return found, b""
