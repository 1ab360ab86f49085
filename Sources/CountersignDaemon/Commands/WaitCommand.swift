// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Glibc
internal import SettingsReading

struct WaitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Wait until the running daemon is ready.",
        discussion: """
            For scripts, and for ExecStartPre= of units that need the daemon. With a challenge, waits until its login does not \
            fail: its session is held, or no request has needed it yet. Exits with 0 when ready, with 69 after the timeout; at \
            once with 64 if no login has this name, and with 77 if this user may not connect.
            """)

    @OptionGroup var admin: AdminOptions

    @Option(name: .long, help: ArgumentHelp("How long to wait: 500ms, 10s, 5m.", valueName: "duration"))
    var timeout = "30s"

    @Argument(
        help: "The challenge, or the name of an upstream with `mobilefirst`.", completion: NameCompletion.challenges)
    var challenge: String?

    @Flag(name: .long, help: "Print one JSON object when ready.")
    var json = false

    func run() throws {
        guard let limit = Self.duration(timeout) else {
            throw Failure("\(timeout): not a valid duration (use 500ms, 10s or 5m)", code: EX_USAGE)
        }
        var client = try admin.client()
        try Self.wait(for: challenge, atMost: limit) { (timeout) throws(Failure) in
            client.timeout = timeout
            return try client.send("GET", "/status").body
        }
        if json { Process.print(["ready": .bool(true)]) }
    }

    /// Waits until the report is ready. Throws after `limit`, with the last reason.
    ///
    /// Throws at once for a failure that waiting cannot fix. `ask` returns the daemon's report or fails, within the given time.
    static func wait(
        for challenge: String?, atMost limit: Duration, ask: (Duration) throws(Failure) -> JSONValue
    ) throws(Failure) {
        let end = ContinuousClock.now + limit
        while true {
            let reason: String
            do throws(Failure) {
                switch Readiness(of: challenge, in: try ask(end - .now)) {
                case .ready: return
                case .notYet(let why): reason = why
                case .unknown(let why): throw Failure(why, code: EX_USAGE)
                }
            } catch {
                guard error.code == EX_UNAVAILABLE else { throw error }
                reason = error.description
            }
            guard ContinuousClock.now < end else {
                throw Failure("not ready after \(limit): \(reason)", code: EX_UNAVAILABLE)
            }
            usleep(50_000)
        }
    }

    /// Returns the duration in the format of the configuration; `nil` if `text` is not one.
    static func duration(_ text: String) -> Duration? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let number = Int64(digits), number <= 1_000_000 else { return nil }
        switch text.dropFirst(digits.count) {
        case "ms": return .milliseconds(number)
        case "s": return .seconds(number)
        case "m": return .seconds(number * 60)
        case "h": return .seconds(number * 3600)
        default: return nil
        }
    }
}

/// Readiness of the daemon or of one login, according to the daemon's report.
enum Readiness: Equatable {
    case ready
    /// Not ready, with the reason.
    case notYet(String)
    /// No login has the given name, so waiting is useless. The text lists the names of all logins.
    case unknown(String)

    /// The readiness of the whole daemon, or of the logins named `challenge`.
    init(of challenge: String?, in report: JSONValue) {
        guard report["upstreams"]?.objectValue != nil else {
            self = .notYet(report["detail"]?.stringValue ?? "its answer is not a status report")
            return
        }
        guard let challenge else {
            let reasons = Self.values(report["reasons"]).compactMap(\.stringValue)
            self =
                report["status"] == "ready"
                ? .ready : .notYet(reasons.isEmpty ? "not ready" : reasons.joined(separator: "; "))
            return
        }
        self.init(ofLoginsNamed: challenge, among: Login.all(in: report))
    }

    private init(ofLoginsNamed name: String, among logins: [Login]) {
        let meant = logins.filter { $0.names.contains(name) }
        if meant.isEmpty {
            let names = Set(logins.flatMap(\.names)).sorted()
            let known = names.isEmpty ? "there are none" : "there are \(names.joined(separator: ", "))"
            self = .unknown("no login of the daemon has the name \(name)\(didYouMean(name, among: names)): \(known)")
        } else if let reason = meant.compactMap(\.obstacle).first {
            self = .notYet(reason)
        } else {
            self = .ready
        }
    }

    fileprivate static func values(_ value: JSONValue?) -> [JSONValue] {
        if case .array(let values)? = value { values } else { [] }
    }
}

/// One login in a report.
private struct Login {
    let upstream: String
    let value: JSONValue

    static func all(in report: JSONValue) -> [Login] {
        (report["upstreams"]?.objectValue ?? [:]).sorted { $0.key < $1.key }.flatMap { upstream, logins in
            Readiness.values(logins).map { Login(upstream: upstream, value: $0) }
        }
    }

    /// The names with which a login can be chosen.
    var names: [String] {
        [value["challenge"]?.stringValue].compactMap(\.self)
            + Readiness.values(value["asks"]).compactMap(\.stringValue)
    }

    /// The reason why the login is not ready. A login that no request has needed yet is ready.
    var obstacle: String? {
        let name = "\(upstream)/\(value["challenge"]?.stringValue ?? "?")"
        switch value["state"]?.stringValue {
        case "held", "cold": return nil
        case "logging-in" where value["code"] == nil: return "\(name): its login is under way"
        default:
            let code = value["code"]?.stringValue ?? "failing"
            return "\(name): \(code): \(value["detail"]?.stringValue ?? "see the log")"
        }
    }
}
