# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from lemonldap import DEBIAN, LemonLDAPOpenIDConnect
from signon import OpenIDConnectApplication


class OpenIDCPostLemonLDAP(LemonLDAPOpenIDConnect, OpenIDConnectApplication):
    title = "mod_auth_openidc with LemonLDAP::NG, by form_post"
    debian = [*OpenIDConnectApplication.debian, *DEBIAN]
    module_settings = "OIDCResponseMode form_post"
