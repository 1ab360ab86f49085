# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application

SETTINGS = """
ALLOWED_HOSTS = ['127.0.0.1']
PASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']
INSTALLED_APPS += ['graphene_django', 'graphql_jwt.refresh_token']
AUTHENTICATION_BACKENDS = ['graphql_jwt.backends.JSONWebTokenBackend', 'django.contrib.auth.backends.ModelBackend']
GRAPHENE = {'SCHEMA': 'farm.urls.schema', 'MIDDLEWARE': ['graphql_jwt.middleware.JSONWebTokenMiddleware']}
SECRET_KEY = open('secret').read()
"""
VIEWS = """
import graphene
import graphql_jwt
from django.contrib.auth.models import Group
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from graphene_django.views import GraphQLView
from graphql_jwt.decorators import login_required

class Query(graphene.ObjectType):
    hello = graphene.String()
    groups = graphene.List(graphene.String)

    def resolve_hello(root, info):
        return 'hello'

    @login_required
    def resolve_groups(root, info):
        return [each.name for each in Group.objects.all()]

class AddGroup(graphene.Mutation):
    class Arguments:
        name = graphene.String()
    name = graphene.String()

    @login_required
    def mutate(root, info, name):
        return AddGroup(name=Group.objects.create(name=name).name)

class Mutation(graphene.ObjectType):
    token_auth = graphql_jwt.ObtainJSONWebToken.Field()
    add_group = AddGroup.Field()

schema = graphene.Schema(query=Query, mutation=Mutation)
urlpatterns = [path('graphql', csrf_exempt(GraphQLView.as_view()))]
"""


class GraphQL(Application):
    title = "Django GraphQL JWT"
    login = "GraphQL, answered by a token"
    documented = True
    pypi = ["django-graphql-jwt==0.4.0", "Django==5.2.19"]
    configuration = """
upstreams:
  graphql:
    url: https://graphql.example.com/

challenges:
  - name: graphql
    upstream: graphql
    gateway: none
    credential: graphql
    detect:
      - { json: { /errors/0/message: You do not have permission } }
      - { json: { /errors/0/message: Error decoding signature } }
    login:
      url: /graphql
      body: json
      parameters:
        query: "mutation ($u: String!, $p: String!) {{ tokenAuth(username: $u, password: $p) {{ token }} }}"
        variables: { u: "{username}", p: "{password}" }
      extract: { token: /data/tokenAuth/token }
    failed: { json: { /errors/0/message: valid credentials } }
    inject: { Authorization: "JWT {token}" }
"""
    page = ("/graphql?query=%7Bgroups%7D", "farmers")
    open_page = ("/graphql?query=%7Bhello%7D", "hello")

    def prepare(self):
        self.run(self.python, "-m", "django", "startproject", "farm", ".")
        with open(self.path("farm/settings.py"), "a") as file:
            file.write(SETTINGS)
        self.file("secret", "first-secret-of-the-farm-and-its-hens")
        self.file("farm/urls.py", VIEWS)
        self.run(self.python, "manage.py", "migrate", "--verbosity", "0")
        self.run(self.python, "manage.py", "createsuperuser", "--noinput", "--username", self.username, "--email", "a@example.com",
            environment={"DJANGO_SUPERUSER_PASSWORD": self.password})
        self.run(self.python, "manage.py", "shell", "-c",
            "from django.contrib.auth.models import Group; Group.objects.create(name='farmers')")

    def start(self):
        self.serve(
            self.python, "manage.py", "runserver", "--noreload", f"127.0.0.1:{self.port}", answers="/graphql?query=%7Bhello%7D")

    def end_sessions(self):
        # Its tokens are signed by this secret.
        self.file("secret", "second-secret-of-the-farm-and-its-hens")
        self.restart()

    def write(self, caller):
        answer = caller.post("/graphql", document={"query": 'mutation { addGroup(name: "millers") { name } }'})
        assert "millers" in caller.get(self.page[0]).text, f"no group was added: {answer.text[:100]}"
        return answer
