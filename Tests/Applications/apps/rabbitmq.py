# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import os

import processes
from application import Application


class RabbitMQ(Application):
    title = "RabbitMQ management"
    login = "Basic"
    debian = ["rabbitmq-server"]
    configuration = """
upstreams:
  rabbitmq:
    url: https://rabbitmq.example.com/

challenges:
  - name: rabbitmq
    upstream: rabbitmq
    scheme: basic
    credential: rabbitmq
"""
    page = ("/api/whoami", '"ann"')
    open_page = ("/", "RabbitMQ Management")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        names = processes.free_port()
        self.serve("epmd", "-address", "127.0.0.1", "-port", names, name="epmd", answers=None).wait_until_it_listens(names)
        plugins = self.file("enabled_plugins", "[rabbitmq_management].\n")
        settings = self.file("rabbitmq.conf", f"""listeners.tcp.default = 127.0.0.1:{processes.free_port()}
management.tcp.ip = 127.0.0.1
management.tcp.port = {self.port}
default_user = {self.username}
default_pass = {self.password}
default_user_tags.administrator = true
""")
        environment = {
            "HOME": self.folder, "ERL_EPMD_PORT": str(names), "ERL_EPMD_ADDRESS": "127.0.0.1", "RABBITMQ_NODENAME": "farm@localhost",
            "RABBITMQ_MNESIA_BASE": self.path("mnesia"), "RABBITMQ_LOG_BASE": self.path("log"), "RABBITMQ_ENABLED_PLUGINS_FILE": plugins,
            "RABBITMQ_CONFIG_FILE": settings, "RABBITMQ_CONF_ENV_FILE": "/dev/null", "RABBITMQ_LOGS": "-",
            "RABBITMQ_DIST_PORT": str(processes.free_port()), "RABBITMQ_PID_FILE": self.path("pid"),
            "RABBITMQ_FEATURE_FLAGS_FILE": self.path("feature_flags")}
        os.makedirs(self.path("log"), exist_ok=True)
        self.serve("/usr/lib/rabbitmq/bin/rabbitmq-server", environment=environment)

    def write(self, caller):
        answer = caller.post("/api/queues/%2F/hens", document={"durable": True}, method="PUT")
        assert "hens" in caller.get("/api/queues").text, f"no queue was made: {answer}"
        return answer
