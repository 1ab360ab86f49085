# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""A small HTTP client that follows no redirect: of the callers, and of the applications' own administration."""

import html.parser
import http.client
import json
import urllib.parse
from dataclasses import dataclass


@dataclass
class Answer:
    status: int
    fields: http.client.HTTPMessage
    body: bytes

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code of a reply that Countersign made itself."""
        if self.fields.get("Content-Type", "").startswith("application/problem+json") and "Proxy-Status" in self.fields:
            return self.json.get("code")
        return None

    def __str__(self):
        """In a few words, for the reason of a failure."""
        if self.code:
            return f"{self.status} {self.code}"
        place = urllib.parse.urlsplit(self.fields.get("Location", "")).path
        return f"{self.status} to {place}" if place else str(self.status)


class Caller:
    """A program that calls, by the name of one that people use: it keeps the cookies that it gets, and nothing else."""

    AGENTS = ["curl/8.14.1", "python-requests/2.32.3", "Prometheus/2.53.0", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"]
    made = 0

    def __init__(self, port, timeout=40):
        self.port, self.timeout, self.cookies = port, timeout, {}
        self.agent = self.AGENTS[Caller.made % len(self.AGENTS)]
        Caller.made += 1

    def get(self, path, headers=None):
        return self.send("GET", path, headers=headers)

    def post(self, path, form=None, document=None, headers=None, method="POST"):
        """`form` as a form's fields, `document` as JSON."""
        kind, body = "application/x-www-form-urlencoded", urllib.parse.urlencode(form or {}).encode()
        if document is not None:
            kind, body = "application/json", json.dumps(document).encode()
        return self.send(method, path, body, {"Content-Type": kind, **(headers or {})})

    def send(self, method, path, body=None, headers=None):
        fields = {"User-Agent": self.agent, **(headers or {})}
        if self.cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        try:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            taken = Answer(answer.status, answer.headers, answer.read(16 << 20))
        finally:
            connection.close()
        for line in taken.fields.get_all("Set-Cookie") or []:
            name, _, value = line.split(";")[0].partition("=")
            self.cookies[name.strip()] = value.strip()
        return taken


class _Inputs(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.forms = []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag == "form":
            self.forms.append((named, {}))
        elif tag == "input" and self.forms and named.get("name") and named.get("type") not in ("submit", "checkbox", "radio"):
            self.forms[-1][1][named["name"]] = named.get("value") or ""


def inputs(page, name):
    """The inputs, hidden ones too, of that form of the page which has an input of this name."""
    reader = _Inputs()
    reader.feed(page)
    return next((fields for _, fields in reader.forms if name in fields), {})
