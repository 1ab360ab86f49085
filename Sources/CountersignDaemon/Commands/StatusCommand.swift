// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the state of the running daemon and its logins.",
        discussion: """
            Exits with 0 if the daemon is ready, with 69 if it is not ready or not running. With --live, only tests that the \
            daemon's event loops run, whatever the state of upstreams and logins: for a supervisor that restarts a hung daemon.
            """)

    @OptionGroup var admin: AdminOptions

    @Flag(name: .long, help: "Print nothing; exit with 0 if the daemon is alive.")
    var live = false

    @Flag(name: .long, help: "Print one JSON object.")
    var json = false

    func validate() throws {
        if live, json { throw ValidationError("--live prints nothing: use either --live or --json") }
    }

    func run() throws {
        if live { return try checkLiveness() }
        let answer = try admin.client().send("GET", "/status")
        if json {
            Process.print(String(decoding: answer.body.serialized(), as: UTF8.self))
        } else {
            for line in StatusLines.lines(of: answer.body) { Process.print(line) }
        }
        if answer.body["status"]?.stringValue != "ready" { throw ExitCode(EX_UNAVAILABLE) }
    }

    private func checkLiveness() throws {
        var client = try admin.client()
        client.timeout = .seconds(5)
        guard try client.send("GET", "/livez").status == 200 else {
            throw Failure("the event loop of a worker is stuck", code: EX_UNAVAILABLE)
        }
    }
}

/// Text form of the daemon's status report.
enum StatusLines {
    /// Returns the lines of the whole report.
    static func lines(of report: JSONValue) -> [String] {
        var lines = ["status    \(text(report["status"])) (version \(text(report["version"])))"]
        for reason in values(report["reasons"]) { lines.append("reason    \(text(reason))") }
        for (name, value) in (report["figures"]?.objectValue ?? [:]).sorted(by: { $0.key < $1.key }) {
            lines.append("figure    \(name) \(value.integerValue ?? 0)")
        }
        lines += logins(of: report["upstreams"] ?? .null)
        if let sessionStore = report["session_store"] {
            let seconds = sessionStore["for_seconds"]?.integerValue ?? 0
            let reason = sessionStore["detail"]?.stringValue.map { " (\($0))" } ?? ""
            lines.append("store     \(text(sessionStore["state"])) for \(seconds) s\(reason)")
        }
        for latch in values(report["latches"]) {
            lines.append("latch     \(text(latch["challenge"])): \(text(latch["detail"]))")
        }
        return lines
    }

    /// Returns a line for each login of each upstream.
    static func logins(of upstreams: JSONValue) -> [String] {
        var lines: [String] = []
        for (upstream, logins) in (upstreams.objectValue ?? [:]).sorted(by: { $0.key < $1.key }) {
            for login in values(logins) {
                var line = "session   \(upstream)/\(text(login["challenge"]))"
                if let name = login["credential"]?.stringValue, !name.isEmpty { line += " by \(name)" }
                if let scope = login["scope"]?.stringValue, !scope.isEmpty { line += " [\(scope)]" }
                let asks = values(login["asks"]).map { text($0) }
                if !asks.isEmpty { line += " (\(asks.joined(separator: ", ")))" }
                line += ": \(text(login["state"]))"
                if let seconds = login["held_seconds"]?.integerValue { line += " for \(seconds) s" }
                if login["taken_over"] == .bool(true) { line += ", taken over" }
                if let count = login["renewals"]?.integerValue, count > 0 { line += ", renewed \(count) times" }
                if let seconds = login["renews_in"]?.integerValue { line += ", renews in \(seconds) s" }
                if let seconds = login["expires_in"]?.integerValue { line += ", expires in \(seconds) s" }
                if let count = login["waiters"]?.integerValue { line += ", \(count) requests wait" }
                if let code = login["code"]?.stringValue { line += " (\(code))" }
                lines.append(line)
            }
        }
        return lines
    }

    private static func text(_ value: JSONValue?) -> String { value?.stringValue ?? "?" }

    private static func values(_ value: JSONValue?) -> [JSONValue] {
        if case .array(let values)? = value { values } else { [] }
    }
}
