# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from lemonldap import DEBIAN, LemonLDAPSAML
from signon import MellonApplication


class MellonLemonLDAP(LemonLDAPSAML, MellonApplication):
    title = "mod_auth_mellon with LemonLDAP::NG"
    documented = True
    debian = [*MellonApplication.debian, *DEBIAN]
