# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from application import Application


class Icecast(Application):
    title = "Icecast"
    login = "Basic"
    debian = ["icecast2", "media-types"]
    configuration = """
upstreams:
  icecast:
    url: https://icecast.example.com/

challenges:
  - name: icecast
    upstream: icecast
    scheme: basic
    credential: icecast
"""
    page = ("/admin/stats.xsl", "Admin")
    open_page = ("/status.xsl", "Icecast")
    not_for = {"ended": "it keeps no session", "write": "its administration is by GET alone"}

    def start(self):
        change = "<changeowner><user>nobody</user><group>nogroup</group></changeowner>" if self.is_root else ""
        path = self.file("icecast.xml", f"""<icecast>
<authentication><source-password>source</source-password>
<admin-user>{self.username}</admin-user><admin-password>{self.password}</admin-password></authentication>
<hostname>localhost</hostname>
<listen-socket><port>{self.port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
<paths><basedir>/usr/share/icecast2</basedir><logdir>{self.path('log')}</logdir><webroot>/usr/share/icecast2/web</webroot>
<adminroot>/usr/share/icecast2/admin</adminroot></paths>
<logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog></logging>
<security><chroot>0</chroot>{change}</security></icecast>
""", 0o644)
        self.folder_for_all("log")
        self.serve("icecast2", "-c", path, answers="/status.xsl")
