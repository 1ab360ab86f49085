# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import sqlite3
import time

from application import Application
from web import inputs

SETTINGS = """
ALLOWED_HOSTS = ['127.0.0.1']
PASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']
INSTALLED_APPS += ['django_otp', 'django_otp.plugins.otp_static', 'django_otp.plugins.otp_totp', 'two_factor']
MIDDLEWARE += ['django_otp.middleware.OTPMiddleware']
LOGIN_URL = 'two_factor:login'
LOGIN_REDIRECT_URL = '/admin/'
OTP_TOTP_THROTTLE_FACTOR = 0
"""
VIEWS = """
from django.http import HttpResponse
from django.urls import include, path
from two_factor.admin import AdminSiteOTPRequired
from two_factor.urls import urlpatterns as of_two_factor
from django.contrib import admin
from django.contrib.auth.models import Group
site = AdminSiteOTPRequired()
site.register(Group)
urlpatterns = [
    path('', include(of_two_factor)), path('admin/', site.urls), path('hello/', lambda request: HttpResponse('hello'))]
"""
# The same, as its database has it.
SEED = "3132333435363738393031323334353637383930"


class TwoFactor(Application):
    title = "Django two-factor authentication"
    login = "form in two steps, the second with a one-time password"
    documented = True
    pypi = ["django-two-factor-auth==1.18.1", "phonenumberslite==8.13.55", "Django==5.2.19"]
    more_fields = {"totp-seed": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}
    configuration = """
upstreams:
  twofactor:
    url: https://twofactor.example.com/

challenges:
  - name: twofactor
    upstream: twofactor
    gateway: none
    credential: twofactor
    detect: { status: 302, redirect-to: /login/ }
    login:
      - page: /account/login/
        url: form
        parameters: { auth-username: "{username}", auth-password: "{password}" }
        fields: hidden
        success: { form-fields: [token-otp_token] }
      - { url: form, parameters: { token-otp_token: "{totp}" }, fields: hidden }
    prove-at: /admin/
"""
    page = ("/admin/", "<strong>ann</strong>")
    open_page = ("/hello/", "hello")

    def localized(self, text):
        # Each check's daemon is a new one, and does not know which passwords the others have sent.
        with sqlite3.connect(self.path("db.sqlite3"), timeout=20) as database:
            database.execute("UPDATE otp_totp_totpdevice SET last_t = -1")
        return text

    def prepare(self):
        self.run(self.python, "-m", "django", "startproject", "farm", ".")
        with open(self.path("farm/settings.py"), "a") as file:
            file.write(SETTINGS)
        self.file("farm/urls.py", VIEWS)
        self.run(self.python, "manage.py", "migrate", "--verbosity", "0")
        self.run(self.python, "manage.py", "createsuperuser", "--noinput", "--username", self.username, "--email", "a@example.com",
            environment={"DJANGO_SUPERUSER_PASSWORD": self.password})
        code = (
            "from django.contrib.auth.models import User; from django_otp.plugins.otp_totp.models import TOTPDevice; "
            f"TOTPDevice.objects.create(user=User.objects.get(), name='default', key='{SEED}', tolerance=2)")
        self.run(self.python, "manage.py", "shell", "-c", code)

    def start(self):
        self.serve(self.python, "manage.py", "runserver", "--noreload", f"127.0.0.1:{self.port}", answers="/hello/")

    def end_sessions(self):
        code = "from django.contrib.sessions.models import Session; Session.objects.all().delete()"
        self.run(self.python, "manage.py", "shell", "-c", code)
        # No one-time password is sent twice: the next login is possible when the next one begins.
        time.sleep(30 - time.time() % 30)

    def write(self, caller):
        form = inputs(caller.get("/admin/auth/group/add/").text, "name")
        answer = caller.post("/admin/auth/group/add/", form=dict(form, name="farmers", _save="Save"))
        assert "farmers" in caller.get("/admin/auth/group/").text, f"no group was added: {answer}"
        return answer
