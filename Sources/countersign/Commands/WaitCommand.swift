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
            is over.
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
        let client = try admin.client()
        let end = ContinuousClock.now + limit
        var reason = "it does not answer"
        while true {
            if let report = try? client.send("GET", "/status").body {
                if isReady(report) { return }
                reason = StatusLines.lines(of: report).first ?? ""
            }
            guard ContinuousClock.now < end else {
                throw Failure("not ready after \(timeout): \(reason)", code: EX_UNAVAILABLE)
            }
            usleep(50_000)
        }
    }

    private func isReady(_ report: JSONValue) -> Bool {
        guard let challenge else { return report["status"]?.stringValue == "ready" }
        let states = StatusLines.states(of: challenge, in: report)
        return !states.isEmpty && states.allSatisfy { $0 == "held" || $0 == "cold" }
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
