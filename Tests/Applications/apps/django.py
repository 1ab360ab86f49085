# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application
from web import inputs


class Django(Application):
    title = "Django admin"
    login = "form"
    documented = True
    pypi = ["Django==5.2.19"]
    quick = True
    configuration = """
upstreams:
  django:
    url: https://django.example.com/

challenges:
  - name: django
    upstream: django
    gateway: form
    credential: django
    prove-at: /admin/
"""
    page = ("/admin/", "<strong>ann</strong>")
    open_page = ("/static/admin/css/base.css", "DJANGO")

    def prepare(self):
        self.run(self.python, "-m", "django", "startproject", "site_of_ann", ".")
        with open(self.path("site_of_ann/settings.py"), "a") as file:
            file.write("ALLOWED_HOSTS = ['127.0.0.1']\nPASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']\n")
        self.run(self.python, "manage.py", "migrate", "--verbosity", "0")
        self.run(self.python, "manage.py", "createsuperuser", "--noinput", "--username", self.username, "--email", "a@example.com",
            environment={"DJANGO_SUPERUSER_PASSWORD": self.password})

    def start(self):
        self.serve(self.python, "manage.py", "runserver", "--noreload", f"127.0.0.1:{self.port}", answers="/admin/login/")

    def end_sessions(self):
        code = "from django.contrib.sessions.models import Session; Session.objects.all().delete()"
        self.run(self.python, "manage.py", "shell", "-c", code)

    def write(self, caller):
        form = inputs(caller.get("/admin/auth/group/add/").text, "name")
        answer = caller.post("/admin/auth/group/add/", form=dict(form, name="farmers", _save="Save"))
        assert "farmers" in caller.get("/admin/auth/group/").text, f"no group was added: {answer}"
        return answer
