// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("The shipped units under a real systemd")
struct SystemdTests {
    @Test("start by socket, log in, reload, restart without a refused request, and stop")
    func lifeOfAService() async throws {
        try await SystemdScenario(limit: 60).run("life")
    }
}

@Suite("docs/getting-started.md")
struct GettingStartedTests {
    @Test("leads from the package to the first request through a login, under a real systemd")
    func steps() async throws {
        let page = Repository.text(of: "docs/getting-started.md")
        let configurations = page.split(separator: "```yaml\n").dropFirst().compactMap {
            $0.split(separator: "```").first
        }
        .map { String($0.replacing("https://wiki.example.com/", with: "http://127.0.0.1:8081/basic/")) }
        try #require(configurations.count == 2)
        var scenario = SystemdScenario()
        scenario.package = (try await DebianPackage(), "/srv/countersign.deb")
        scenario.configuration = ""
        scenario.dropIn = nil
        scenario.files = ["/srv/first.yaml": configurations[0], "/srv/second.yaml": configurations[1]]
        // Its own commands, with a person's input on their standard input.
        try await scenario.run("getting-started")
    }
}

/// Failures of a service, under a real systemd.
@Suite("A service under a real systemd")
struct ServiceLifeTests {
    @Test("refuses a wrong configuration by status, journal and exit of a reload, and serves on by the old one")
    func reload() async throws {
        var scenario = SystemdScenario()
        scenario.files["/etc/systemd/system/extra.socket"] = """
            [Socket]
            FileDescriptorName=extra
            ListenStream=127.0.0.1:8085
            Service=countersign.service

            """
        try await scenario.run("reload")
    }

    @Test("is ended by the watchdog when a loop stands still, comes back, and drains within its time")
    func watchdog() async throws {
        var scenario = SystemdScenario()
        scenario.dropIn? += """
            WatchdogSec=2s
            RestartSec=100ms

            """
        scenario.files["/etc/countersign/slow.yaml"] = SystemdScenario.bank(listener: "127.0.0.1:8086")
        scenario.files["/usr/local/lib/hold.py"] = Repository.text(of: "Tests/Scenarios/systemd/hold.py")
        try await scenario.run("watchdog")
    }

    @Test("fails no request of 32 connections in a hundred reloads and twenty restarts")
    func steady() async throws {
        var scenario = SystemdScenario()
        scenario.dropIn? += """
            [Unit]
            StartLimitIntervalSec=0

            """
        scenario.limit = 150
        try await scenario.run("steady")
    }
}

@Suite("A restart under a real systemd")
struct RestartTests {
    @Test("fails no request of 32 connections and costs no login, nor does a kill")
    func restart() async throws {
        let scenario = SystemdScenario(
            configuration: Self.configuration,
            files: [
                "/etc/countersign/secrets/bank-pin.pin": "1234",
                "/etc/countersign/secrets/ann": #"{"username": "ann", "password": "demo"}"#,
                "/etc/countersign/secrets/api": #"{"client-id": "demo", "client-secret": "demo:secret+%"}"#,
            ], dropIn: Self.dropIn)
        try await scenario.run("restart")
    }

    private static let configuration = """
        listeners:
          - address: systemd:countersign
            upstream: bank
            routes:
              - { path: /basic/, upstream: server }
              - { path: /digest/, upstream: server }
              - { path: /form/, upstream: server }
              - { path: /oauth/, upstream: server }
              - { path: /checks/, upstream: server }
        upstreams:
          bank:
            url: http://127.0.0.1:8081/mfp/api/adapters/bank/
            mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
          server:
            url: http://127.0.0.1:8081/
        credentials: { sources: [systemd] }
        challenges:
          - name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }
          - name: api
            at: http://127.0.0.1:8081/oauth/*
            scheme: bearer
            login: at-start
            credential: api
            token: { grant: client-credentials, url: "http://127.0.0.1:8081/oauth/token" }
          - name: checks
            at: http://127.0.0.1:8081/checks/*
            security-check: PinCode
            credential: bank-pin
            answer: { pin: "{pin}" }
            answer-url: /checks/login
          - name: basic
            at: http://127.0.0.1:8081/basic/*
            scheme: basic
            credential: ann
          - name: digest
            at: http://127.0.0.1:8081/digest/*
            scheme: digest
            credential: ann
          - name: page
            at: http://127.0.0.1:8081/form/*
            gateway: j-security-check
            credential: ann

        """

    private static let dropIn = """
        [Unit]
        StartLimitIntervalSec=0

        [Service]
        LoadCredential=bank-pin.pin:/etc/countersign/secrets/bank-pin.pin
        LoadCredential=ann:/etc/countersign/secrets/ann
        LoadCredential=api:/etc/countersign/secrets/api

        """
}

@Suite("Private files of the unit, and root's commands beside it")
struct ServiceFileTests {
    @Test(
        "files in /etc reach the unit by LoadCredential=, and doctor and login work as root without taking anything from it"
    )
    func files() async throws {
        var scenario = SystemdScenario(limit: 100)
        scenario.configuration = Self.configuration
        scenario.files = [:]
        scenario.dropIn = """
            [Service]
            LoadCredential=secrets.env:/etc/countersign/secrets.env
            LoadCredential=keyring.key:/etc/countersign/keyring.key
            LoadCredential=client.key:/etc/countersign/client.key

            """
        try await scenario.run("private-files")
    }

    private static let configuration = """
        listeners:
          - address: systemd:countersign
            upstream: bank
            routes: [{ path: /ledger/, upstream: ledger }]
        upstreams:
          bank:
            url: http://127.0.0.1:8081/mfp/api/adapters/bank/
            mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
          ledger:
            url: https://ledger.invalid/
            tls: { certificate: /etc/countersign/client.pem, key: "${CREDENTIALS_DIRECTORY}/client.key" }
        credentials:
          sources:
            - { keyring: /var/lib/countersign/keyring, key-file: "${CREDENTIALS_DIRECTORY}/keyring.key" }
            - env: ${CREDENTIALS_DIRECTORY}/secrets.env
        challenges:
          - name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }
          - name: ledger-key
            upstream: ledger
            inject: { X-Api-Key: "{key}" }
            credential: ledger-key

        """
}

/// The places where operators look, under a real systemd.
@Suite("Secrets of a service")
struct ServiceSecrecyTests {
    /// Three secrets, none of them a default: one that goes along with every request, one that is rejected, one that
    /// opens a keyring.
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
            // A helper that prints a secret on its standard error.
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
