# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from php import PHPApplication
from web import inputs


class DokuWiki(PHPApplication):
    title = "DokuWiki"
    login = "form"
    debian = ["dokuwiki", "php-cli", "php-cgi"]
    root = "/usr/share/dokuwiki"
    configuration = """
upstreams:
  dokuwiki:
    url: https://dokuwiki.example.com/

challenges:
  - name: dokuwiki
    upstream: dokuwiki
    gateway: form
    credential: dokuwiki
    prove-at: /doku.php?id=start
"""
    page = ("/doku.php?id=start", ">ann<")
    open_page = ("/doku.php?id=public", "A public page")

    def start(self):
        conf, data = self.path("conf"), self.path("data")
        for name in "attic cache index locks log media media_attic media_meta meta pages tmp".split():
            os.makedirs(os.path.join(data, name))
        self.file("conf/local.php", f"""<?php
$conf['savedir'] = '{data}';
$conf['useacl'] = 1;
$conf['authtype'] = 'authplain';
$conf['updatecheck'] = 0;
""")
        self.file("conf/acl.auth.php", "# <?php exit()?>\n*\t@ALL\t0\n*\t@user\t8\npublic\t@ALL\t1\n")
        self.file("conf/users.auth.php", f"# <?php exit()?>\n{self.username}:{self.bcrypt(self.password)}:Ann:a@example.com:user\n")
        self.file("data/pages/start.txt", "The start page.\n")
        self.file("data/pages/public.txt", "A public page.\n")
        self.serve_php(f"define('DOKU_CONF', '{conf}/');", answers="/doku.php?do=login")

    def end_sessions(self):
        # Its second cookie holds name and password, encrypted by this salt.
        os.unlink(self.path("data/meta/_htcookiesalt2"))
        self.forget_sessions()

    def write(self, caller):
        form = inputs(caller.get("/doku.php?id=farm&do=edit").text, "sectok")
        answer = caller.post("/doku.php?id=farm", form={**form, "wikitext": "Of the farm.", "do[save]": "1"})
        assert "Of the farm." in caller.get("/doku.php?id=farm").text, f"nothing was written: {answer}"
        return answer
