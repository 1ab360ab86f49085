# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import processes
from application import Application


class Motion(Application):
    title = "Motion"
    login = "Digest"
    debian = ["motion"]
    configuration = """
upstreams:
  motion:
    url: https://motion.example.com/

challenges:
  - name: motion
    upstream: motion
    scheme: digest
    credential: motion
"""
    page = ("/0/config/list", "daemon")
    not_for = {"ended": "it keeps no session", "write": "it has no request but GET"}

    def start(self):
        path = self.file("motion.conf", f"""daemon off
setup_mode off
webcontrol_port {self.port}
webcontrol_localhost on
webcontrol_parms 2
webcontrol_auth_method 2
webcontrol_authentication {self.username}:{self.password}
stream_port {processes.free_port()}
videodevice /dev/null
target_dir {self.folder}
picture_output off
movie_output off
""")
        self.serve("motion", "-n", "-c", path)
