# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Applications behind Apache whose module sends users to an identity provider, another server with an origin of its own."""

import os
import re

import processes
from apache import ApacheApplication
from tap import Tap

PAGE = """#!/bin/sh
printf 'Content-Type: text/html\\r\\n\\r\\n'
[ "$REQUEST_METHOD" = POST ] && head -c 4096 >>%s
printf '<p>Welcome, %%s</p>\\n' "$REMOTE_USER"
"""
RECIPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/challenges/single-sign-on.md")


def recipe(kind, name):
    """The challenge in the documents for a kind of application, under another name, with its upstream. Listeners and credentials
    are the farm's."""
    with open(RECIPES) as file:
        blocks = re.findall(r"```yaml\n(.*?)```", file.read(), re.DOTALL)
    block = next(block for block in blocks if f"\n  - name: {kind}\n" in block)
    challenge = re.sub(rf"\b{kind}\b", name, block[block.index("challenges:"):])
    return f"upstreams:\n  {name}:\n    url: https://{name}.example.com/\n\n{challenge}"


class SignOnApplication(ApacheApplication):
    page = ("/app/", "Welcome, ann")
    open_page = ("/open/", "For everybody")
    # The recipe of the documents, by the name of its challenge.
    kind = ""
    # Of Apache, besides those of every application.
    module = ""

    def __init__(self, folder):
        super().__init__(folder)
        self.modules = ["cgid", self.module]
        self.provider_port = processes.free_port()
        self.provider = None

    def __init_subclass__(cls, **named):
        super().__init_subclass__(**named)
        if cls.__module__.startswith("apps."):
            cls.configuration = recipe(cls.kind, cls.__module__.removeprefix("apps."))

    @property
    def taps(self):
        """The wire to the provider, where the password goes."""
        return [self.provider] if self.provider else []

    @property
    def addresses(self):
        return {**super().addresses, "https://idp.example.com": self.idp}

    @property
    def idp(self):
        """The provider's address, by the tap."""
        return f"http://127.0.0.1:{self.provider.port}"

    @property
    def own(self):
        """The application's own address, by the tap."""
        return f"http://127.0.0.1:{self.public_port}"

    def start(self):
        self.provider = self.provider or Tap(self.provider_port)
        self.start_provider()
        self.folder_for_all("written")
        self.file("app/index.cgi", PAGE % self.path("written/posts"), 0o755)
        self.file("open/index.html", "<p>For everybody</p>\n", 0o644)
        for name in ("app", "open"):
            os.chmod(self.path(name), 0o755)
        self.serve_apache(f"""
ScriptSock {self.path('cgisock')}
DirectoryIndex index.html
ScriptAlias /app/ {self.path('app')}/index.cgi/
Alias /open {self.path('open')}
<Directory {self.folder}>
Require all granted
</Directory>
{self.rules()}
""", answers="/open/")

    def start_provider(self):
        """Starts the identity provider at `provider_port`."""
        raise NotImplementedError

    def rules(self):
        """The rules of Apache's module."""
        raise NotImplementedError

    def key_pair(self, name):
        """A key and a certificate of its own, as files that servers can read."""
        key, certificate = self.path(f"{name}.key"), self.path(f"{name}.crt")
        if not os.path.exists(key):
            self.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", f"/CN={name}", "-keyout", key,
                "-out", certificate)
            os.chmod(key, 0o644)
        return key, certificate

    def stop(self):
        super().stop()
        if self.provider:
            self.provider.stop()
            self.provider = None

    def end_sessions(self):
        """Ends the sessions of both servers."""
        self.end_sessions_of_provider()
        self.end_sessions_of_application()

    def write(self, caller):
        path = self.path("written/posts")
        # The first request that meets the login, so that its POST is what is redirected.
        answer = caller.post("/app/", form={"written": "by-ann"})
        with open(path) as file:
            count = file.read().count("written=by-ann")
        assert count == 1, f"written {count} times: {answer}"
        return answer


class OpenIDConnectApplication(SignOnApplication):
    """Behind mod_auth_openidc, a client that the provider knows as `app` with the secret `secret-of-app`."""

    login = "single sign-on, OpenID Connect"
    kind = "openidc"
    module = "auth_openidc"
    debian = ["libapache2-mod-auth-openidc", *ApacheApplication.debian]
    # More of the module.
    module_settings = ""

    @property
    def callback(self):
        return f"{self.own}/app/callback"

    @property
    def discovery(self):
        return f"{self.idp}/.well-known/openid-configuration"

    def rules(self):
        self.folder_for_all("sessions")
        return f"""
OIDCProviderMetadataURL {self.discovery}
OIDCClientID app
OIDCClientSecret secret-of-app
OIDCRedirectURI {self.callback}
OIDCCryptoPassphrase passphrase-of-app
OIDCCacheType file
OIDCCacheDir {self.path('sessions')}
OIDCRemoteUserClaim sub
{self.module_settings}
<Location /app/>
AuthType openid-connect
Require valid-user
</Location>
"""

    def end_sessions_of_application(self):
        for name in os.listdir(self.path("sessions")):
            os.unlink(os.path.join(self.path("sessions"), name))


class MellonApplication(SignOnApplication):
    """Behind mod_auth_mellon, a SAML service provider."""

    login = "single sign-on, SAML"
    kind = "mellon"
    module = "auth_mellon"
    debian = ["libapache2-mod-auth-mellon", *ApacheApplication.debian]
    # What the provider tells about the user, and its metadata's path.
    attribute = "uid"
    metadata = "/saml/metadata"

    @property
    def entity(self):
        return f"{self.own}/mellon/metadata"

    def metadata_of_application(self):
        """The service provider's metadata, for the identity provider."""
        key, certificate = self.key_pair("app")
        with open(certificate) as file:
            text = "".join(line for line in file if "-----" not in line)
        place = f"{self.own}/mellon"
        descriptor = "".join(
            f'<KeyDescriptor use="{use}"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>{text}</ds:X509Certificate></ds:X509Data>'
            f"</ds:KeyInfo></KeyDescriptor>" for use in ("signing", "encryption"))
        return (
            f'<EntityDescriptor entityID="{self.entity}" xmlns="urn:oasis:names:tc:SAML:2.0:metadata" '
            'xmlns:ds="http://www.w3.org/2000/09/xmldsig#">'
            '<SPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol" AuthnRequestsSigned="true">'
            f'{descriptor}<AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" '
            f'Location="{place}/postResponse" index="0"/></SPSSODescriptor></EntityDescriptor>')

    def rules(self):
        import urllib.request
        key, certificate = self.key_pair("app")
        with urllib.request.urlopen(self.idp + self.metadata, timeout=20) as answer:
            self.file("idp.xml", answer.read().decode(), 0o644)
        self.file("app.xml", self.metadata_of_application(), 0o644)
        return f"""
<Location />
MellonEnable info
MellonEndpointPath /mellon
MellonSPMetadataFile {self.path('app.xml')}
MellonSPPrivateKeyFile {key}
MellonSPCertFile {certificate}
MellonIdPMetadataFile {self.path('idp.xml')}
MellonUser {self.attribute}
MellonSecureCookie Off
</Location>
<Location /app/>
MellonEnable auth
Require valid-user
</Location>
"""

    def end_sessions_of_application(self):
        """Its sessions are in memory."""
        self.children[-1].stop()
        self.children.pop()
        self.serve("/usr/sbin/apache2", "-f", self.path("apache.conf"), "-D", "FOREGROUND", answers="/open/")


class CASApplication(SignOnApplication):
    """Behind mod_auth_cas."""

    login = "single sign-on, CAS"
    kind = "cas"
    module = "auth_cas"
    debian = ["libapache2-mod-auth-cas", *ApacheApplication.debian]
    # The provider's path.
    cas = "/cas"

    def rules(self):
        self.folder_for_all("sessions")
        return f"""
CASCookiePath {self.path('sessions')}/
CASLoginURL {self.idp}{self.cas}/login
CASValidateURL {self.idp}{self.cas}/serviceValidate
CASRootProxiedAs {self.own}
<Location /app/>
AuthType CAS
Require valid-user
</Location>
"""

    def end_sessions_of_application(self):
        for name in os.listdir(self.path("sessions")):
            os.unlink(os.path.join(self.path("sessions"), name))
