# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from lemonldap import DEBIAN, LemonLDAPOpenIDConnect
from signon import OpenIDConnectApplication


class OpenIDLemonLDAP(LemonLDAPOpenIDConnect, OpenIDConnectApplication):
    title = "mod_auth_openidc with LemonLDAP::NG"
    documented = True
    debian = [*OpenIDConnectApplication.debian, *DEBIAN]
