// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// A page that scripts build, a browser, and a real systemd.
@Suite("A browser in a unit of its own")
struct ServiceBrowserTests {
    private static let configuration = """
        listeners:
          - { address: 127.0.0.1:8080, upstream: portal }
        admin: { address: "unix:/run/countersign/admin.sock" }
        upstreams:
          portal: { url: "http://127.0.0.1:8070/" }
        credentials:
          sources: [systemd]
        challenges:
          - name: portal
            upstream: portal
            gateway: none
            credential: portal
            detect: { body-contains: /app.js }
            login: { socket: /run/countersign-browser.socket }

        """

    @Test("logs the hardened daemon in, and leaves nothing behind")
    func browser() async throws {
        var scenario = SystemdScenario(configuration: Self.configuration)
        scenario.files = [
            "/etc/countersign/secrets/portal.username": "ann", "/etc/countersign/secrets/portal.password": "demo",
        ]
        for name in [
            "browser-login", "countersign-browser.socket", "countersign-browser@.service", "countersign-group.conf",
        ] {
            scenario.files["/srv/browser-login/\(name)"] = Repository.text(of: "config/browser-login/\(name)")
        }
        for name in ["fake.py", "scripted"] {
            scenario.files["/srv/fakes/\(name)"] = Repository.text(of: "Tests/Scripts/fakes/\(name)")
        }
        scenario.dropIn = """
            [Service]
            LoadCredential=portal.username:/etc/countersign/secrets/portal.username
            LoadCredential=portal.password:/etc/countersign/secrets/portal.password

            """
        scenario.limit = 240
        try await scenario.run("browser")
    }
}
