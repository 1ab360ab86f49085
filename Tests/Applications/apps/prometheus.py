# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from php import PHPApplication


class Prometheus(PHPApplication):
    title = "Prometheus"
    login = "Basic"
    debian = ["prometheus", "php-cli"]
    configuration = """
upstreams:
  prometheus:
    url: https://prometheus.example.com/

challenges:
  - name: prometheus
    upstream: prometheus
    scheme: basic
    credential: prometheus
"""
    page = ("/api/v1/query?query=1", '"success"')
    not_for = {"ended": "it keeps no session"}

    def start(self):
        web = self.file("web.yml", f"basic_auth_users: {{ {self.username}: '{self.bcrypt(self.password)}' }}\n")
        path = self.file("prometheus.yml", "global: { scrape_interval: 1h }\n")
        self.serve(
            "prometheus", f"--config.file={path}", f"--storage.tsdb.path={self.path('data')}", f"--web.config.file={web}",
            f"--web.listen-address=127.0.0.1:{self.port}", "--web.enable-lifecycle")

    def write(self, caller):
        return caller.post("/-/reload")
