// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import DemoUpstream
internal import Glibc
internal import Settings
internal import SettingsReading

/// The embedded demonstration: the upstream, a configuration for it, and the daemon as it always is.
struct Demonstration {
    private let upstream: DemoUpstream
    private let events: DemoEvents
    private let folder: String
    private let port: UInt16
    private let configuration: String

    /// Starts the upstream and writes the configuration into a folder of its own.
    init(port: UInt16, upstreamPort: UInt16) throws {
        let events = DemoEvents()
        upstream = DemoUpstream(port: upstreamPort) { event in
            Process.say("  \(event)")
            events.add(event)
        }
        self.events = events
        do throws(DemoServerError) {
            try upstream.start()
        } catch {
            throw Failure("the demo's upstream: \(error); --upstream-port chooses another port", code: EX_UNAVAILABLE)
        }
        self.port = try port == 0 ? DemoUpstream.freePort() : port
        folder = try TemporaryFolder.make("demo")
        configuration = Self.configuration(port: self.port, upstream: upstream, folder: folder)
        // The credentials come from the environment, as they would in a container. Nothing has read that yet.
        unsafe setenv("COUNTERSIGN_BANK_PIN__PIN", "1234", 1)
        unsafe setenv("COUNTERSIGN_API__CLIENT_ID", "demo", 1)
        unsafe setenv("COUNTERSIGN_API__CLIENT_SECRET", "demo:secret+%", 1)
        unsafe setenv("COUNTERSIGN_ANN__USERNAME", "ann", 1)
        unsafe setenv("COUNTERSIGN_ANN__PASSWORD", "demo", 1)
    }

    /// Serves until it is interrupted.
    func run() throws {
        defer { end() }
        let daemon = try makeDaemon()
        Process.say(introduction)
        try daemon.run()
    }

    /// Tries everything once, on a thread beside the daemon, and fails where an answer is not as it should be.
    func check() throws {
        defer { end() }
        let daemon = try makeDaemon()
        let trial = DemoTrial(port: port, events: events)
        trial.start()
        try daemon.run()
        let failures = trial.failures
        for failure in failures { Process.complain(failure) }
        guard failures.isEmpty else { throw Failure("the demonstration failed", code: EX_UNAVAILABLE) }
        Process.say("the demonstration works")
    }

    private func makeDaemon() throws -> Daemon {
        let path = "\(folder)/countersign.yaml"
        guard let file = unsafe fopen(path, "we") else { throw Failure("cannot write \(path)", code: EX_UNAVAILABLE) }
        unsafe fputs(configuration, file)
        unsafe fclose(file)
        let (settings, problems) = Settings.load(path: path, environment: Process.environment)
        guard let settings else {
            throw Failure(problems.map(\.description).joined(separator: "\n"), code: EX_CONFIG)
        }
        return try Daemon(
            settings: settings, path: path, observer: DemoObserver(), stateDirectory: "\(folder)/state")
    }

    private func end() {
        upstream.stop()
        TemporaryFolder.remove(folder)
    }

    // MARK: What it serves

    private static func configuration(port: UInt16, upstream: DemoUpstream, folder: String) -> String {
        let server = "http://127.0.0.1:\(upstream.port)"
        return """
            listeners:
              - address: 127.0.0.1:\(port)
                upstream: bank
                routes:
                  - { path: /basic/, upstream: server }
                  - { path: /digest/, upstream: server }
                  - { path: /form/, upstream: server }
                  - { path: /oauth/, upstream: server }
                  - { path: /checks/, upstream: server }
            upstreams:
              bank:
                url: \(upstream.bankURL)
                mobilefirst:
                  api: \(server)/mfp/api
                  application: com.sample.pincode
                  platform: android
                  version: "1.0"
              server:
                url: \(server)/
            credentials:
              sources: [env]                   # COUNTERSIGN_BANK_PIN__PIN and others
            challenges:
              - name: bank-pin
                upstream: bank
                security-check: PinCodeAttempts
                credential: bank-pin
                answer: { pin: "{pin}" }
              - name: api
                at: "\(server)/oauth/*"
                scheme: bearer
                credential: api
                token: { grant: client-credentials, url: "\(server)/oauth/token" }
              - name: checks
                at: "\(server)/checks/*"
                security-check: PinCode
                credential: bank-pin
                answer: { pin: "{pin}" }
                answer-url: /checks/login
              - name: basic
                at: 127.0.0.1:\(upstream.port)/basic/*
                scheme: basic
                credential: ann
              - name: digest
                at: 127.0.0.1:\(upstream.port)/digest/*
                scheme: digest
                realm: Demo
                credential: ann
              - name: page
                at: "\(server)/form/*"
                gateway: j-security-check
                credential: ann
            admin:
              address: unix:\(folder)/admin.sock
            log: { level: warning, format: text }

            """
    }

    private var introduction: String {
        let indented = configuration.split(separator: "\n").map { "    \($0)" }.joined(separator: "\n")
        let local = "http://127.0.0.1:\(port)"
        return """
            Countersign stands in front of a bank whose balance a MobileFirst server protects with a PIN code.

            The configuration:
            \(indented)

            From another terminal:
                curl \(local)/balance
                curl -d '{"to":"savings","amount":5}' \(local)/transfer
                curl -N \(local)/stream
                curl \(local)/oauth/api/echo      (a bearer token of an OAuth 2 server)
                curl \(local)/checks/balance      (a security check that the resource itself names)
                curl \(local)/basic/              (HTTP Basic)
                curl \(local)/digest/             (HTTP Digest)
                curl \(local)/form/               (a login page as Tomcat has it)

            Compare what the upstream says to somebody without a login:
                curl -i \(upstream.bankURL)balance

            What happens upstream is told below; Ctrl-C ends everything.

            """
    }
}
