# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

from apache import ApacheApplication
from web import inputs
OBJECTS = """define command {
    command_name  ok
    command_line  /bin/true
}
define timeperiod {
    timeperiod_name  always
    alias            always
}
define contact {
    contact_name                   ann
    host_notification_commands     ok
    service_notification_commands  ok
    host_notification_period       always
    service_notification_period    always
}
define host {
    host_name            henhouse
    address              127.0.0.1
    check_command        ok
    max_check_attempts   1
    contacts             ann
    check_period         always
    notification_period  always
}
define service {
    host_name            henhouse
    service_description  hens
    check_command        ok
    max_check_attempts   1
    contacts             ann
    check_period         always
    notification_period  always
}
"""


class Nagios(ApacheApplication):
    title = "Nagios 4 behind Apache"
    login = "Digest, with a token against forged requests"
    debian = ["nagios4-cgi", "nagios4-core", *ApacheApplication.debian]
    modules = ["auth_digest", "cgid"]
    configuration = """
upstreams:
  nagios:
    url: https://nagios.example.com/

challenges:
  - name: nagios
    upstream: nagios
    scheme: digest
    credential: nagios
"""
    page = ("/cgi-bin/status.cgi?host=all", "henhouse")
    open_page = ("/static/style.css", "")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        var = self.path("var")
        for name in ("var", "var/spool", "var/archives", "var/rw"):
            self.folder_for_all(name)
        self.file("objects.cfg", OBJECTS, 0o644)
        users = "nagios_user=www-data\nnagios_group=www-data" if self.is_root else ""
        main = self.file("nagios.cfg", f"""cfg_file={self.path('objects.cfg')}
log_file={var}/nagios.log
object_cache_file={var}/objects.cache
precached_object_file={var}/objects.precache
status_file={var}/status.dat
status_update_interval=1
state_retention_file={var}/retention.dat
retain_state_information=0
log_archive_path={var}/archives
check_result_path={var}/spool
temp_file={var}/nagios.tmp
temp_path={var}
lock_file={var}/nagios.lock
command_file={var}/rw/nagios.cmd
query_socket={var}/rw/nagios.qh
check_external_commands=1
execute_host_checks=0
execute_service_checks=0
check_for_updates=0
{users}
""", 0o644)
        cgi = self.file("cgi.cfg", f"""main_config_file={main}
physical_html_path=/usr/share/nagios4/htdocs
url_html_path=/html
use_authentication=1
authorized_for_all_hosts={self.username}
authorized_for_all_services={self.username}
authorized_for_system_commands={self.username}
authorized_for_all_host_commands={self.username}
authorized_for_all_service_commands={self.username}
authorized_for_system_information={self.username}
""", 0o644)
        nagios = self.serve("/usr/sbin/nagios4", main, name="nagios", answers=None)
        nagios.wait_until_it_listens(os.path.join(var, "rw/nagios.qh"))
        self.file("static/style.css", "body {}\n", 0o644)
        self.folder_for_all("static")
        self.serve_apache(f"""
ScriptSock {self.path('cgisock')}
ScriptAlias /cgi-bin /usr/lib/cgi-bin/nagios4
SetEnv NAGIOS_CGI_CONFIG {cgi}
Alias /static {self.path('static')}
<Location /cgi-bin>
AuthType Digest
AuthName farm
AuthUserFile {self.digest_file('farm')}
Require valid-user
</Location>
""", answers="/static/style.css")

    def write(self, caller):
        # 11: no notifications any more.
        form = inputs(caller.get("/cgi-bin/cmd.cgi?cmd_typ=11").text, "cmd_typ")
        answer = caller.post("/cgi-bin/cmd.cgi", form=dict(form, btnSubmit="Commit"))
        assert "successfully submitted" in answer.text, f"no command was taken: {answer}"
        return answer
