// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import DemoUpstream
internal import Glibc
internal import Proxy
internal import Settings
internal import SettingsReading
internal import System

struct DemoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Start a protected upstream and the proxy in front of it, to try with curl.",
        discussion: """
            Everything runs on loopback and leaves nothing behind: the configuration and the state are in a temporary directory \
            that is removed at the end.
            """)

    @Option(name: .long, help: "The port of the proxy; 0 picks a free one.")
    var port: UInt16 = 8080

    @Option(name: .long, help: "The port of the upstream; 0 picks a free one.")
    var upstreamPort: UInt16 = 8081

    @Flag(name: .long, help: "Send each request once, check the answers, and exit.")
    var check = false

    func run() throws {
        let demonstration = try Demonstration(
            port: check && port == 8080 ? 0 : port, upstreamPort: check && upstreamPort == 8081 ? 0 : upstreamPort)
        if check {
            try demonstration.check()
        } else {
            try demonstration.run()
        }
    }
}

/// Embedded demonstration: an upstream, a configuration for it, and an ordinary daemon.
struct Demonstration {
    private let upstream: DemoUpstream
    private let events: DemoEvents
    private let port: UInt16
    private let configuration: TemporaryConfiguration

    /// Starts the upstream and composes the configuration. Throws if a port cannot be used.
    init(port: UInt16, upstreamPort: UInt16) throws {
        let events = DemoEvents()
        upstream = DemoUpstream(port: upstreamPort) { event in
            Process.print("  \(event)")
            events.add(event)
        }
        self.events = events
        do throws(DemoServerError) {
            try upstream.start()
        } catch {
            throw Failure(
                "the upstream of the demo cannot start: \(error); choose another port by --upstream-port",
                code: EX_UNAVAILABLE)
        }
        self.port = try port == 0 ? DemoUpstream.freePort() : port
        let (port, upstream) = (self.port, upstream)
        configuration = try TemporaryConfiguration("demo") {
            Self.configuration(port: port, upstream: upstream, folder: $0)
        }
        // The credentials are in the environment, as in a container.
        Process.setVariable("COUNTERSIGN_BANK_PIN__PIN", to: "1234")
        Process.setVariable("COUNTERSIGN_WRONG_PIN__PIN", to: "9999")
        Process.setVariable("COUNTERSIGN_API__CLIENT_ID", to: "demo")
        Process.setVariable("COUNTERSIGN_API__CLIENT_SECRET", to: "demo:secret+%")
        Process.setVariable("COUNTERSIGN_ANN__USERNAME", to: "ann")
        Process.setVariable("COUNTERSIGN_ANN__PASSWORD", to: "demo")
    }

    /// Serves until the process is interrupted.
    func run() throws {
        defer { stop() }
        let daemon = try configuration.daemon(observer: DemoObserver())
        try StartFailure.explained(advice: "; choose another port by --port") {
            // The listeners are open by then: if a port is in use, only this error is printed.
            try daemon.run(whenReady: { Process.print(introduction(page: $0.last ?? 0)) })
        }
    }

    /// Sends every request once while the daemon runs. Throws if an answer is unexpected.
    func check() throws {
        defer { stop() }
        let daemon = try configuration.daemon(observer: DemoObserver())
        let check = DemoCheck(port: port, events: events)
        check.start()
        try daemon.run()
        let failures = check.failures
        for failure in failures { Process.printError(failure) }
        guard failures.isEmpty else { throw Failure("the demonstration failed", code: EX_UNAVAILABLE) }
        Process.print("the demonstration works")
    }

    private func stop() {
        upstream.stop()
        configuration.remove()
    }

    // MARK: Configuration and introduction

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
                  - { path: /wrong/, upstream: wrong, strip-prefix: true }
            upstreams:
              bank:
                url: \(upstream.bankURL)
                mobilefirst:
                  api: \(server)/mfp/api
                  application: com.sample.pincode
                  platform: android
                  version: "1.0"
              wrong:                           # the same bank with another PIN
                url: \(upstream.bankURL)
                mobilefirst: { api: \(server)/mfp/api, application: com.sample.pincode, platform: ios, version: "1.0" }
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
              - name: wrong-pin
                upstream: wrong
                security-check: PinCodeAttempts
                credential: wrong-pin
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
              address: [unix:\(folder)/admin.sock, 127.0.0.1:0]
            log: { level: warning, format: text }

            """
    }

    /// Suggested requests, on one screen.
    private func introduction(page: UInt16) -> String {
        let local = "http://127.0.0.1:\(port)"
        return """
            Countersign runs in front of a bank whose balance is protected by the PIN 1234.

            From another terminal:
                curl \(local)/balance               the PIN is sent for you
                curl -d '{"to":"savings","amount":5}' \(local)/transfer
                curl \(local)/basic/                also /digest/ /form/ /oauth/api/echo
                curl -i \(upstream.bankURL)balance   without it: 401

            A wrong PIN is sent once, and never again until you say so:
                curl \(local)/wrong/balance         once more: nothing is sent
                countersign status --socket \(configuration.folder)/admin.sock
                countersign unlatch wrong-pin --socket \(configuration.folder)/admin.sock

            The status page is http://127.0.0.1:\(page)/, the configuration is
            \(configuration.folder)/countersign.yaml

            What happens is printed below. Press Ctrl-C to stop.

            """
    }
}

/// Observer that prints the logins of the demonstration.
struct DemoObserver: LoginObserver {
    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        Process.print("proxy: login at \(key.challenge) begins\(cause.isRenewal ? " before the session expires" : "")")
    }

    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        Process.print("proxy: \(step.text)")
    }

    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        let milliseconds = duration.milliseconds
        switch result {
        case .success(let session):
            let established =
                session.isVerified ? "established a session" : "established a session, which the next request verifies,"
            Process.print("proxy: login at \(key.challenge) \(established) in \(milliseconds) ms")
        case .failure(let failure):
            Process.print("proxy: login at \(key.challenge): \(failure.code.rawValue): \(failure.detail)")
        }
    }
}
