# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The identity provider LemonLDAP::NG, with its demonstration accounts, for applications of `signon.py`."""

import glob
import json
import os

DEBIAN = ["liblemonldap-ng-portal-perl", "liblasso-perl", "libgd-securityimage-perl", "libimage-magick-perl", "libxml-simple-perl",
    "libcrypt-openssl-bignum-perl", "libstring-random-perl", "starman", "openssl"]
INI = """[all]
logLevel = warn
checkTime = 3600
[configuration]
type = File
dirName = {folder}/conf
[portal]
staticPrefix = /static
templateDir = /usr/share/lemonldap-ng/portal/templates
languages = en
"""


class LemonLDAP:
    """A mix-in: users whose password is their name."""

    username = "dwho"
    password = "dwho"
    page = ("/app/", "Welcome, dwho")

    def attempt(self, password):
        return rb"password=" + password.encode()

    def settings(self):
        """Settings of the protocol."""
        return {}

    def start_provider(self):
        for name in ("conf", "llng/sessions/lock", "llng/psessions/lock", "llng/cache"):
            os.makedirs(self.path(name), exist_ok=True)
        storage = "Apache::Session::File"
        settings = {
            "cfgNum": 1, "cfgDate": 1627287638, "cfgAuthor": "farm", "cfgVersion": "2.16.1", "portal": f"{self.idp}/", "domain": "127.0.0.1",
            "cookieName": "lemonldap", "securedCookie": 0, "authentication": "Demo", "userDB": "Same", "passwordDB": "Demo",
            "registerDB": "Null", "demoExportedVars": {"cn": "cn", "mail": "mail", "uid": "uid"}, "whatToTrace": "uid",
            "locationRules": {}, "exportedHeaders": {}, "macros": {}, "groups": {}, "notification": 0, "loginHistoryEnabled": 0,
            "portalSkin": "bootstrap", "timeout": 7200, "globalStorage": storage, "persistentStorage": storage,
            "globalStorageOptions": {"Directory": self.path("llng/sessions"), "LockDirectory": self.path("llng/sessions/lock")},
            "persistentStorageOptions": {
                "Directory": self.path("llng/psessions"), "LockDirectory": self.path("llng/psessions/lock")},
            "localSessionStorage": "", "localSessionStorageOptions": {}, **self.settings()}
        self.file("conf/lmConf-1.json", json.dumps(settings))
        self.serve(
            "starman", "--listen", f"127.0.0.1:{self.provider_port}", "--workers", "3", "--preload-app",
            "/usr/share/lemonldap-ng/portal/htdocs/index.psgi", name="lemonldap", answers=None,
            environment={"LLNG_DEFAULTCONFFILE": self.file("lemonldap-ng.ini", INI.format(folder=self.folder))}
        ).wait_until_it_answers(self.provider_port)

    def end_sessions_of_provider(self):
        for path in glob.glob(self.path("llng/sessions/*")):
            if os.path.isfile(path):
                os.unlink(path)

    def pem(self):
        key, certificate = self.key_pair("idp")
        with open(key) as one, open(certificate) as other:
            return one.read(), other.read()


class LemonLDAPOpenIDConnect(LemonLDAP):
    def settings(self):
        key, certificate = self.pem()
        return {
            "issuerDBOpenIDConnectActivation": 1, "oidcServicePrivateKeySig": key, "oidcServicePublicKeySig": certificate,
            "oidcServiceKeyIdSig": "farm", "oidcServiceAllowAuthorizationCodeFlow": 1,
            "oidcRPMetaDataOptions": {"app": {
                "oidcRPMetaDataOptionsClientID": "app", "oidcRPMetaDataOptionsClientSecret": "secret-of-app",
                "oidcRPMetaDataOptionsRedirectUris": self.callback, "oidcRPMetaDataOptionsBypassConsent": 1,
                "oidcRPMetaDataOptionsIDTokenSignAlg": "RS256", "oidcRPMetaDataOptionsUserIDAttr": "uid"}},
            "oidcRPMetaDataExportedVars": {"app": {"name": "cn"}}}


class LemonLDAPSAML(LemonLDAP):
    def settings(self):
        key, certificate = self.pem()
        return {
            "issuerDBSAMLActivation": 1, "samlServicePrivateKeySig": key, "samlServicePublicKeySig": certificate,
            "samlSPMetaDataXML": {"app": {"samlSPMetaDataXML": self.metadata_of_application()}},
            "samlSPMetaDataOptions": {"app": {"samlSPMetaDataOptionsCheckSSOMessageSignature": 1}},
            "samlSPMetaDataExportedAttributes": {"app": {"uid": "1;uid;;"}}}


class LemonLDAPCAS(LemonLDAP):
    def settings(self):
        return {
            "issuerDBCASActivation": 1,
            "casAppMetaDataOptions": {"app": {"casAppMetaDataOptionsService": f"{self.own}/"}},
            "casAppMetaDataExportedVars": {"app": {"uid": "uid"}}}
