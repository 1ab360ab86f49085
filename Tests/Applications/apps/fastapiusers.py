# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application
from web import Caller

PROGRAM = """
import contextlib, os, uuid
from fastapi import Depends, FastAPI
from fastapi_users import BaseUserManager, FastAPIUsers, UUIDIDMixin, schemas
from fastapi_users.authentication import AuthenticationBackend, BearerTransport, JWTStrategy
from fastapi_users.db import SQLAlchemyBaseUserTableUUID, SQLAlchemyUserDatabase
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase

class Base(DeclarativeBase): pass
class User(SQLAlchemyBaseUserTableUUID, Base): pass
engine = create_async_engine("sqlite+aiosqlite:///farm.db")
maker = async_sessionmaker(engine, expire_on_commit=False)
secret = os.environ["FARM_SECRET"]

async def database():
    async with maker() as session:
        yield SQLAlchemyUserDatabase(session, User)

class Manager(UUIDIDMixin, BaseUserManager[User, uuid.UUID]):
    reset_password_token_secret = verification_token_secret = secret

async def manager(users=Depends(database)):
    yield Manager(users)

class Read(schemas.BaseUser[uuid.UUID]): pass
class Create(schemas.BaseUserCreate): pass
class Update(schemas.BaseUserUpdate): pass

backend = AuthenticationBackend(
    name="jwt", transport=BearerTransport(tokenUrl="auth/jwt/login"), get_strategy=lambda: JWTStrategy(secret, 3600))
users = FastAPIUsers[User, uuid.UUID](manager, [backend])

@contextlib.asynccontextmanager
async def life(app):
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield

app = FastAPI(lifespan=life)
app.include_router(users.get_auth_router(backend), prefix="/auth/jwt")
app.include_router(users.get_register_router(Read, Create), prefix="/auth")
app.include_router(users.get_users_router(Read, Update), prefix="/users")
"""


class FastAPIUsers(Application):
    title = "FastAPI Users"
    login = "OAuth 2 password grant"
    documented = True
    pypi = ["fastapi-users[sqlalchemy]==15.0.5", "aiosqlite==0.22.1", "uvicorn==0.54.0"]
    username = "ann@example.com"
    configuration = """
upstreams:
  fastapiusers:
    url: https://fastapiusers.example.com/

challenges:
  - name: fastapiusers
    upstream: fastapiusers
    gateway: none
    credential: fastapiusers
    detect: { status: 401 }
    login:
      url: /auth/jwt/login
      parameters: { username: "{username}", password: "{password}" }
      extract: { token: /access_token }
    failed: { status: 400, because: wrong-password }
    inject: { Authorization: "Bearer {token}" }
"""
    page = ("/users/me", "ann@example.com")
    open_page = ("/openapi.json", "openapi")

    def prepare(self):
        self.file("farm.py", PROGRAM)
        self.serve_with("first-secret-of-the-farm-and-its-hens")
        answer = Caller(self.port).post("/auth/register", document={"email": self.username, "password": self.password})
        assert answer.status == 201, answer.text
        self.stop()

    def serve_with(self, secret):
        # Its tokens are signed by the secret.
        self.serve(
            self.python, "-m", "uvicorn", "--host", "127.0.0.1", "--port", self.port, "farm:app", environment={"FARM_SECRET": secret},
            answers="/openapi.json")

    def start(self):
        self.serve_with("second-secret-of-the-farm-and-its-hens")

    def end_sessions(self):
        self.stop()
        self.serve_with("third-secret-of-the-farm-and-its-hens")

    def write(self, caller):
        answer = caller.post("/users/me", document={"password": self.password, "email": "bert@example.com"}, method="PATCH")
        assert "bert@example.com" in caller.get("/users/me").text, f"nothing was changed: {answer}"
        return caller.post("/users/me", document={"email": self.username}, method="PATCH")
