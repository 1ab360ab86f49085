// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import Synchronization
internal import TestSupport
import Testing

/// A scenario's stage: the fake bank in this process, and the real daemon in front of it.
final class Bank: Sendable {
    /// The upstream.
    let upstream: FakeUpstream
    /// The folder of the daemon's configuration, state and log.
    let folder: Folder
    /// The proxy's port.
    let port: UInt16
    private let configurationInForce: Mutex<BankConfiguration>
    private let running = Mutex<DaemonProcess?>(nil)

    fileprivate init(configuration: BankConfiguration, rules: MobileFirstRules, clock: FakeClock) throws {
        // A port that it finds free again when a scenario has stopped it for a while.
        upstream = FakeUpstream(port: Ports.next(), rules: rules, clock: clock)
        folder = try Folder()
        port = Ports.next()
        configurationInForce = Mutex(configuration)
        try upstream.start()
    }

    /// Everything that happened upstream.
    var record: Record { upstream.recorder.record }
    /// Number of answers that reached the PIN check.
    var pinAnswers: Int { record.answerCount(to: "PinCodeAttempts") }
    /// The daemon.
    var daemon: DaemonProcess {
        get throws {
            guard let daemon = running.withLock({ $0 }) else { throw ChildError(description: "no daemon runs") }
            return daemon
        }
    }

    /// Starts the daemon with the present configuration; `before` as for ``DaemonProcess/start(in:environment:before:)``.
    @discardableResult
    func startDaemon(before: [String] = []) async throws -> DaemonProcess {
        let configuration = configurationInForce.withLock { $0 }
        write(configuration)
        let daemon = try await DaemonProcess.start(
            in: folder, environment: environment(of: configuration), before: before)
        running.withLock { $0 = daemon }
        return daemon
    }

    /// The environment for the daemon, and for commands that read its configuration.
    var environment: [String: String] { environment(of: configurationInForce.withLock { $0 }) }

    private func environment(of configuration: BankConfiguration) -> [String: String] {
        let places = ["PROXY_PORT": "\(port)", "UPSTREAM_PORT": "\(upstream.port)", "FOLDER": folder.path]
        return configuration.environment.merging(places) { $1 }
    }

    /// Runs a command of the program with the configuration.
    func countersign(_ command: String, _ arguments: String...) async throws -> Command {
        try await Command.run(
            [Binary.path, command, "--config", folder.path(of: "countersign.yaml")] + arguments,
            environment: environment, in: folder)
    }

    /// Changes the configuration file; the daemon notices at a reload or its next start.
    func configure(_ change: (inout BankConfiguration) -> Void) {
        write(
            configurationInForce.withLock { configuration in
                change(&configuration)
                return configuration
            })
    }

    /// Ends the daemon and returns its exit code; `nil` if none runs.
    @discardableResult
    func stopDaemon() async -> Int32? {
        let daemon = running.withLock { running in
            defer { running = nil }
            return running
        }
        return await daemon?.child.end()
    }

    /// Kills the daemon as the kernel would.
    func killDaemon() async {
        let daemon = running.withLock { running in
            defer { running = nil }
            return running
        }
        daemon?.child.signal(SIGKILL)
        _ = await daemon?.child.waitForExit()
    }

    /// Returns the local URL of a path.
    func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    /// Requests a path with curl.
    func curl(_ path: String, _ options: String...) async throws -> Curl {
        try await Curl.run(options + [url(path)], in: folder)
    }

    /// Requests a path with curl and expects that status, or a local reply with that code.
    @discardableResult
    func expect(
        _ path: String, _ options: String..., status: Int? = nil, code: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Curl {
        let answer = try await Curl.run(options + [url(path)], in: folder)
        if let status { #expect(answer.status == status, "\(answer.summary)", sourceLocation: sourceLocation) }
        if let code { #expect(answer.code == code, "\(answer.summary)", sourceLocation: sourceLocation) }
        return answer
    }

    /// Asks the admin listener.
    func admin(_ path: String, _ options: String...) async throws -> Curl {
        try await Curl.run(
            ["--unix-socket", folder.path(of: "admin.sock")] + options + ["http://localhost\(path)"], in: folder)
    }

    /// Opens a connection to the proxy.
    func connect() throws -> RawConnection { try RawConnection(port: port) }

    private func write(_ configuration: BankConfiguration) {
        folder.write(
            configuration.text(port: port, upstreamPort: upstream.port, folder: folder), to: "countersign.yaml")
    }

    fileprivate func end() async -> Int32? {
        let code = await stopDaemon()
        await offPool { self.upstream.stop() }
        folder.removeAll()
        return code
    }
}

/// Runs a scenario: starts the bank and the daemon, and always ends both. The daemon must end in order, and its
/// requests must have been right for the upstream.
///
/// The configuration may use `${PROXY_PORT}`, `${UPSTREAM_PORT}` and `${FOLDER}`.
func withBank(
    _ configuration: BankConfiguration = BankConfiguration(), rules: MobileFirstRules = FakeUpstream.rules,
    clock: FakeClock = .system, startsDaemon: Bool = true, sourceLocation: SourceLocation = #_sourceLocation,
    _ scenario: (Bank) async throws -> Void
) async throws {
    try await Slots.run {
        let bank = try Bank(configuration: configuration, rules: rules, clock: clock)
        var result: Result<Void, any Error> = .success(())
        do {
            if startsDaemon { try await bank.startDaemon() } else { bank.configure { _ in } }
            try await scenario(bank)
        } catch {
            result = .failure(error)
        }
        let log = bank.folder.text(of: "daemon.log")
        let code = await bank.end()
        #expect(code == nil || code == 0, "the daemon ended with \(code ?? 0):\n\(log)", sourceLocation: sourceLocation)
        let violations = bank.record.violations
        #expect(violations.isEmpty, "the upstream complains of what it got", sourceLocation: sourceLocation)
        try result.get()
    }
}

/// The configuration of a scenario: the fakes' bank, and the scenario's changes.
struct BankConfiguration: Sendable {
    /// The listeners, each with all its lines; `nil`: the usual one, with routes for the resources that need no login.
    var listeners: String?
    /// A TCP port for the admin listener, besides its socket.
    var adminPort: UInt16?
    /// Further lines of `upstreams.bank`.
    var bank: [String] = []
    /// The lines of `upstreams.bank.mobilefirst` after its address; empty: the bank is not a MobileFirst server.
    var mobileFirst = ["application: com.sample.pincode", "platform: android", #"version: "1.0""#]
    /// Further upstreams, each with all its lines.
    var upstreams: [String] = []
    /// The items of `credentials.sources`.
    var sources = ["env"]
    /// `credentials.ask`, if anybody is asked.
    var asked: String?
    /// The items of `challenges`.
    var challenges = [Self.pinChallenge]
    /// The event loops.
    var workers = 1
    /// Further lines at the top level.
    var more: [String] = []
    /// The daemon's environment besides the usual.
    var environment = ["COUNTERSIGN_BANK_PIN__PIN": "1234"]

    /// The challenge that most scenarios are about.
    static let pinChallenge = """
        name: bank-pin
        upstream: bank
        security-check: PinCodeAttempts
        credential: bank-pin
        answer: { pin: "{pin}" }
        """

    /// The whole file, in place of all else but the environment.
    var whole: String?

    /// Returns the text of the file.
    func text(port: UInt16, upstreamPort: UInt16, folder: Folder) -> String {
        if let whole { return whole }
        let server = "http://127.0.0.1:\(upstreamPort)"
        let usual = """
            address: 127.0.0.1:\(port)
            upstream: bank
            routes:
              - { path: /open/, upstream: server }
              - { path: /basic/, upstream: server }
            """
        let bankLines =
            ["url: \(server)/mfp/api/adapters/bank/"] + bank
            + (mobileFirst.isEmpty
                ? [] : ["mobilefirst:"] + (["api: \(server)/mfp/api"] + mobileFirst).map { "  " + $0 })
        var lines = ["listeners:"] + item(listeners ?? usual)
        let admin = ["unix:\(folder.path(of: "admin.sock"))"] + (adminPort.map { ["127.0.0.1:\($0)"] } ?? [])
        lines += ["admin:", "  address: [\(admin.map { "\"\($0)\"" }.joined(separator: ", "))]"]
        lines += ["upstreams:", "  bank:"] + bankLines.map { "    " + $0 }
        lines += ["  server:", "    url: \(server)/"]
        for upstream in upstreams { lines += upstream.split(separator: "\n").map { "  " + $0 } }
        lines += ["credentials:", "  sources:"] + sources.flatMap { item($0).map { "  " + $0 } }
        if let asked { lines.append("  ask: \(asked)") }
        lines += challenges.isEmpty ? [] : ["challenges:"] + challenges.flatMap { item($0) }
        lines += ["workers: \(workers)", "log: { level: debug, format: json }"] + more
        return lines.joined(separator: "\n") + "\n"
    }

    /// Lines as an item of a list.
    private func item(_ text: String) -> [String] {
        text.split(separator: "\n").enumerated().map { ($0 == 0 ? "  - " : "    ") + $1 }
    }
}
