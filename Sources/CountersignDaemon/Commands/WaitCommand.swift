// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Glibc

struct WaitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Wait until the running daemon is ready.",
        discussion: """
            For scripts, and for ExecStartPre= of units that need it. With a challenge, waits until its login does not \
            fail: its session is held, or nobody has asked for it yet. Ends with 0 when that is so, with 69 when the time \
            is over; at once with 64 where no login has that name, and with 77 where this user may not ask.
            """)

    @OptionGroup var admin: AdminOptions

    @Option(name: .long, help: ArgumentHelp("How long to wait: 500ms, 10s, 5m.", valueName: "duration"))
    var timeout = "30s"

    @Argument(help: "The challenge, or the upstream of a MobileFirst server.")
    var challenge: String?

    func run() throws {
        guard let limit = Self.duration(timeout) else {
            throw Failure("\(timeout): not a duration such as 500ms, 10s or 5m", code: EX_USAGE)
        }
        var client = try admin.client()
        try Self.wait(for: challenge, atMost: limit) { (patience) throws(Failure) in
            client.patience = patience
            return try client.send("GET", "/status").body
        }
    }

    /// Asks until it is so. Throws at once what waiting does not mend, else when the time is over, with the last reason.
    ///
    /// `ask` brings the daemon's report, or fails, within the time that it is given.
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

    /// A duration as the configuration has it.
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
