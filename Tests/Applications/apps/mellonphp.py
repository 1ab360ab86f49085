# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from simplesaml import DEBIAN, SimpleSAML
from signon import MellonApplication


class MellonSimpleSAML(SimpleSAML, MellonApplication):
    title = "mod_auth_mellon with SimpleSAMLphp"
    debian = [*MellonApplication.debian, *DEBIAN]
    metadata = "/saml2/idp/metadata.php"
