# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from php import PHPApplication


class DockerRegistry(PHPApplication):
    title = "Docker registry (htpasswd)"
    login = "Basic"
    debian = ["docker-registry", "php-cli"]
    quick = True
    configuration = """
upstreams:
  registry:
    url: https://registry.example.com/

challenges:
  - name: registry
    upstream: registry
    scheme: basic
    credential: registry
"""
    page = ("/v2/_catalog", "repositories")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        users = self.file("users", f"{self.username}:{self.bcrypt(self.password)}\n")
        path = self.file("config.yml", f"""
version: 0.1
storage: {{ filesystem: {{ rootdirectory: {self.path('data')} }} }}
http: {{ addr: "127.0.0.1:{self.port}" }}
auth: {{ htpasswd: {{ realm: farm, path: {users} }} }}
""")
        self.serve("docker-registry", "serve", path, answers="/v2/")

    def write(self, caller):
        answer = caller.post("/v2/farm/blobs/uploads/")
        assert answer.status == 202, f"no upload began: {answer}"
        return answer
