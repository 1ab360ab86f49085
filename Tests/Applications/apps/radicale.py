# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application


class Radicale(Application):
    title = "Radicale"
    login = "Basic"
    debian = ["radicale"]
    quick = True
    configuration = """
upstreams:
  radicale:
    url: https://radicale.example.com/

challenges:
  - name: radicale
    upstream: radicale
    scheme: basic
    credential: radicale
"""
    page = ("/ann/calendar/", "BEGIN:VCALENDAR")
    open_page = ("/.web/", "Radicale")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        self.file("users", f"{self.username}:{self.password}\n")
        path = self.file("config", f"""
[server]
hosts = 127.0.0.1:{self.port}
[auth]
type = htpasswd
htpasswd_filename = {self.path('users')}
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = {self.path('collections')}
""")
        self.file("collections/collection-root/ann/calendar/.Radicale.props", '{"tag": "VCALENDAR"}')
        self.serve("/usr/bin/radicale", "--config", path, answers="/.web/")

    def write(self, caller):
        event = (
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//farm//\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\n"
            "DTSTART:20260101T000000Z\r\nSUMMARY:Farm\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")
        answer = caller.send("PUT", "/ann/calendar/1.ics", event.encode(), {"Content-Type": "text/calendar"})
        assert "SUMMARY:Farm" in caller.get("/ann/calendar/1.ics").text, f"nothing was written: {answer}"
        return answer
