// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// Where operators look, under a real systemd.
@Suite("Secrets of a service")
struct ServiceSecrecyTests {
    /// Three secrets that are nobody's default: one that goes along with every request, one that is rejected, one that opens a keyring.
    private static let secrets = ["goes-along-7f3a91c2", "rejected-5be2d0a4", "opens-0c9d44e8"]

    private static let configuration = """
        listeners:
          - { address: "systemd:countersign", upstream: server }
        access-log: { format: json, to: /var/log/countersign/access.log, query: false }
        admin: { address: ["unix:/run/countersign/admin.sock", "127.0.0.1:8099"] }
        upstreams:
          server: { url: "http://127.0.0.1:8081/" }
        credentials:
          sources: [exec: [/opt/helper], systemd, keyring: /var/lib/countersign/keyring]
        challenges:
          - { name: key, upstream: server, credential: api, inject: { X-Api-Key: "{key}" } }
          - { name: page, at: "http://127.0.0.1:8081/form/*", gateway: j-security-check, credential: page }

        """

    @Test("stand in no journal, metric, page, command, process table, core dump and directory")
    func nowhere() async throws {
        var scenario = SystemdScenario(configuration: Self.configuration)
        scenario.files = [
            "/etc/countersign/secrets/keyring-passphrase": Self.secrets[2],
            "/etc/systemd/system/inside.service": """
            [Service]
            Type=oneshot
            DynamicUser=yes
            User=countersign
            StateDirectory=countersign
            LoadCredential=keyring-passphrase:/etc/countersign/secrets/keyring-passphrase
            ExecStart=/bin/sh /run/inside.sh
            StandardOutput=truncate:/run/inside
            StandardError=file:/run/inside

            """,
            // One that says too much on its standard error.
            "/opt/helper": """
            #!/bin/sh
            read -r question
            case $question in
            *page*)
                echo "the password of ann is \(Self.secrets[1])" >&2
                echo '{"fields": {"username": "ann", "password": "\(Self.secrets[1])"}}' ;;
            *) echo '{}' ;;
            esac

            """,
        ]
        scenario.dropIn = """
            [Service]
            LoadCredential=keyring-passphrase:/etc/countersign/secrets/keyring-passphrase
            LimitCORE=infinity

            """
        try await scenario.run("secrets", Self.secrets)
    }
}
