# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import json

import processes
from application import Application


class Orthanc(Application):
    title = "Orthanc"
    login = "Basic"
    debian = ["orthanc"]
    configuration = """
upstreams:
  orthanc:
    url: https://orthanc.example.com/

challenges:
  - name: orthanc
    upstream: orthanc
    scheme: basic
    credential: orthanc
"""
    page = ("/system", "ApiVersion")
    not_for = {"ended": "it keeps no session"}

    def start(self):
        path = self.file("orthanc.json", json.dumps({
            "Name": "Farm", "StorageDirectory": self.path("data"), "IndexDirectory": self.path("data"), "HttpPort": self.port,
            "DicomPort": processes.free_port(), "DicomServerEnabled": False, "HttpBindAddresses": ["127.0.0.1"],
            "AuthenticationEnabled": True, "RegisteredUsers": {self.username: self.password}}))
        self.serve("/usr/sbin/Orthanc", path)

    def write(self, caller):
        answer = caller.send("PUT", "/modalities/barn", b'["BARN", "127.0.0.1", 104]')
        assert "barn" in caller.get("/modalities").text, f"nothing was added: {answer}"
        return answer
