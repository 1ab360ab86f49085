# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from lemonldap import DEBIAN, LemonLDAPCAS
from signon import CASApplication


class CASLemonLDAP(LemonLDAPCAS, CASApplication):
    title = "mod_auth_cas with LemonLDAP::NG"
    debian = [*CASApplication.debian, *DEBIAN]
