# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""A browser that writes down what it sends and gets, in the form of its network tools (HTTP Archive 1.2)."""

import base64
import json
import urllib.parse

from web import Caller


class Browser(Caller):
    def __init__(self, port):
        super().__init__(port)
        self.entries, self.origin = [], f"http://127.0.0.1:{port}"

    def send(self, method, path, body=None, headers=None):
        fields = {"Host": self.origin[7:], "User-Agent": "Mozilla/5.0", **(headers or {})}
        if self.cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        request = {"method": method, "url": self.origin + path, "httpVersion": "HTTP/1.1", "headers": self._list(fields.items())}
        if body is not None:
            kind = fields.get("Content-Type", "")
            request["postData"] = {"mimeType": kind, "text": body.decode()}
            if kind == "application/x-www-form-urlencoded":
                pairs = urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)
                request["postData"]["params"] = self._list(pairs)
        answer = super().send(method, path, body, headers)
        content = {"size": len(answer.body), "mimeType": answer.fields.get("Content-Type", "")}
        content.update(text=base64.b64encode(answer.body).decode(), encoding="base64")
        response = {"status": answer.status, "headers": self._list(answer.fields.items()), "content": content}
        self.entries.append({"request": request, "response": response})
        return answer

    def save(self, path):
        with open(path, "w") as file:
            json.dump({"log": {"version": "1.2", "creator": {"name": "browser", "version": "1"}, "entries": self.entries}}, file)
        return path

    @staticmethod
    def _list(pairs):
        return [{"name": name, "value": value} for name, value in pairs]
