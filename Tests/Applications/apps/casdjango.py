# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from signon import CASApplication

SETTINGS = """
ALLOWED_HOSTS = ['127.0.0.1']
INSTALLED_APPS += ['cas_server']
PASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']
CAS_AUTH_CLASS = 'cas_server.auth.DjangoAuthUser'
# Otherwise each page asks PyPI for a newer version.
CAS_NEW_VERSION_HTML_WARNING = False
CAS_NEW_VERSION_EMAIL_WARNING = False
"""
ADDRESSES = """
from django.urls import include, path
urlpatterns = [path('cas/', include('cas_server.urls', namespace='cas_server'))]
"""
PATTERN = """
from cas_server.models import ServicePattern
ServicePattern.objects.get_or_create(pos=1, name='farm', pattern='^http://127.0.0.1:')
"""
END = """
from cas_server.models import User
from django.contrib.sessions.models import Session
Session.objects.all().delete()
User.objects.all().delete()
"""


class CASDjango(CASApplication):
    title = "mod_auth_cas with django-cas-server"
    pypi = ["django-cas-server==3.1.0", "Django==5.2.19"]

    def manage(self, *words, environment=None):
        return self.run(self.python, "manage.py", *words, environment=environment)

    def prepare(self):
        self.run(self.python, "-m", "django", "startproject", "provider", ".")
        with open(self.path("provider/settings.py"), "a") as file:
            file.write(SETTINGS)
        self.file("provider/urls.py", ADDRESSES)
        self.manage("migrate", "--verbosity", "0")
        self.manage("createsuperuser", "--noinput", "--username", self.username, "--email", "a@example.com",
            environment={"DJANGO_SUPERUSER_PASSWORD": self.password})
        self.manage("shell", "-c", PATTERN)

    def start_provider(self):
        self.serve(
            self.python, "manage.py", "runserver", "--noreload", f"127.0.0.1:{self.provider_port}", name="provider", answers=None
        ).wait_until_it_answers(self.provider_port, "/cas/login")

    def end_sessions_of_provider(self):
        self.manage("shell", "-c", END)
