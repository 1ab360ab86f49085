# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application

SETTINGS = """
ALLOWED_HOSTS = ['127.0.0.1']
PASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']
INSTALLED_APPS += ['rest_framework', 'rest_framework.authtoken']
REST_FRAMEWORK = {'DEFAULT_AUTHENTICATION_CLASSES': ['rest_framework.authentication.TokenAuthentication']}
"""
VIEWS = """
from django.contrib.auth.models import Group
from django.urls import include, path
from rest_framework import permissions, routers, serializers, viewsets
from rest_framework.authtoken.views import obtain_auth_token

class GroupSerializer(serializers.ModelSerializer):
    class Meta:
        model, fields = Group, ['name']

class GroupViews(viewsets.ModelViewSet):
    queryset, serializer_class, permission_classes = Group.objects.all(), GroupSerializer, [permissions.IsAdminUser]

router = routers.DefaultRouter()
router.register('groups', GroupViews)
urlpatterns = [path('token/', obtain_auth_token), path('', include(router.urls))]
"""


class DjangoREST(Application):
    title = "Django REST framework"
    login = "JSON, answered by a token"
    pypi = ["djangorestframework==3.18.3", "Django==5.2.19"]
    configuration = """
upstreams:
  djangorest:
    url: https://djangorest.example.com/

challenges:
  - name: djangorest
    upstream: djangorest
    gateway: none
    credential: djangorest
    detect: { status: 401, content-type: application/json }
    login:
      url: /token/
      body: json
      parameters: { username: "{username}", password: "{password}" }
      extract: { token: /token }
    failed: { status: 400, json: { /non_field_errors/0: Unable to log in } }
    inject: { Authorization: "Token {token}" }
"""
    page = ("/groups/?format=json", "farmers")
    open_page = ("/?format=json", "groups")

    def prepare(self):
        self.run(self.python, "-m", "django", "startproject", "farm", ".")
        with open(self.path("farm/settings.py"), "a") as file:
            file.write(SETTINGS)
        self.file("farm/urls.py", VIEWS)
        self.run(self.python, "manage.py", "migrate", "--verbosity", "0")
        self.run(self.python, "manage.py", "createsuperuser", "--noinput", "--username", self.username, "--email", "a@example.com",
            environment={"DJANGO_SUPERUSER_PASSWORD": self.password})
        self.run(self.python, "manage.py", "shell", "-c",
            "from django.contrib.auth.models import Group; Group.objects.create(name='farmers')")

    def start(self):
        self.serve(self.python, "manage.py", "runserver", "--noreload", f"127.0.0.1:{self.port}", answers="/?format=json")

    def end_sessions(self):
        code = "from rest_framework.authtoken.models import Token; Token.objects.all().delete()"
        self.run(self.python, "manage.py", "shell", "-c", code)

    def write(self, caller):
        answer = caller.post("/groups/?format=json", document={"name": "millers"})
        assert "millers" in caller.get("/groups/?format=json").text, f"no group was added: {answer}"
        return answer
