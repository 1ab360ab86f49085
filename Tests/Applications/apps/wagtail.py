# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application
from web import inputs


class Wagtail(Application):
    title = "Wagtail"
    login = "form"
    pypi = ["wagtail==8.0.1"]
    configuration = """
upstreams:
  wagtail:
    url: https://wagtail.example.com/

challenges:
  - name: wagtail
    upstream: wagtail
    gateway: form
    credential: wagtail
    prove-at: /admin/
"""
    page = ("/admin/", "ann")
    open_page = ("/", "Welcome to your new Wagtail site")

    def start(self):
        self.run(self.python, "-m", "wagtail.bin.wagtail", "start", "farm", ".")
        self.run(self.python, "manage.py", "migrate", "--verbosity", "0", seconds=120)
        self.run(self.python, "manage.py", "createsuperuser", "--noinput", "--username", self.username, "--email", "a@example.com",
            environment={"DJANGO_SUPERUSER_PASSWORD": self.password})
        self.serve(self.python, "manage.py", "runserver", "--noreload", f"127.0.0.1:{self.port}")

    def end_sessions(self):
        code = "from django.contrib.sessions.models import Session; Session.objects.all().delete()"
        self.run(self.python, "manage.py", "shell", "-c", code)

    def write(self, caller):
        form = inputs(caller.get("/admin/collections/add/").text, "name")
        answer = caller.post("/admin/collections/add/", form=dict(form, name="Farm photos", parent="1"))
        assert "Farm photos" in caller.get("/admin/collections/").text, f"no collection was added: {answer}"
        return answer
