// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ArgumentParser
internal import Basics
internal import ChallengeHandling
internal import System

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
            Process.print(answer.body)
        } else {
            for line in StatusLines.lines(of: answer.body, now: SystemClock.wallClock() / 1000) { Terminal.print(line) }
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

/// Text form of the daemon's status report: its parts, its problems, and their remedies.
enum StatusLines {
    /// Returns the lines of the whole report. Times of the day are in UTC.
    static func lines(of report: JSONValue, now: Int64) -> [String] {
        var lines = [line("status", state(report, now: now))]
        if let file = report["configuration"]?.stringValue { lines.append(line("file", file)) }
        if let reload = report["reload"] { lines.append(line("reload", self.reload(reload, now: now))) }
        let listeners = values(report["listeners"]).compactMap(\.stringValue)
        if !listeners.isEmpty { lines.append(line("listens", listeners.joined(separator: ", "))) }
        if let figures = report["figures"] { lines.append(line("requests", requests(figures))) }
        for reason in values(report["reasons"]) { lines.append(line("problem", text(reason))) }
        for sentence in values(report["unwritten_state"]) { lines.append(line("state", text(sentence))) }
        lines += outages(report["outages"] ?? .null, now: now)
        lines += logins(of: report["upstreams"] ?? .null)
        if let sessionStore = report["session_store"] {
            let seconds = sessionStore["for_seconds"]?.integerValue ?? 0
            let reason = sessionStore["detail"]?.stringValue.map { " (\($0))" } ?? ""
            lines.append(line("store", "\(text(sessionStore["state"])) for \(time(seconds))\(reason)"))
        }
        for latch in values(report["latches"]) {
            let closed = latch["closed_at"]?.integerValue.map { " Closed \(moment($0, now: now))." } ?? ""
            let source = latch["source"]?.stringValue.map { " Source: \($0)." } ?? ""
            lines.append(line("latch", "\(text(latch["challenge"])): \(text(latch["detail"]))\(closed)\(source)"))
        }
        return lines
    }

    private static func state(_ report: JSONValue, now: Int64) -> String {
        var text = "\(text(report["status"])), version \(text(report["version"]))"
        if let process = report["process"]?.integerValue { text += ", process \(process)" }
        if let start = report["started_at"]?.integerValue { text += ", since \(moment(start, now: now))" }
        return text
    }

    private static func reload(_ reload: JSONValue, now: Int64) -> String {
        let ended = reload["ended_at"]?.integerValue.map { moment($0, now: now) } ?? ""
        guard let refusal = reload["refusal"]?.stringValue else { return "none refused; configuration of \(ended)" }
        return "refused \(ended), the old configuration stays in force: \(refusal)"
    }

    private static func requests(_ figures: JSONValue) -> String {
        func number(_ name: String) -> Int64 { figures[name]?.integerValue ?? 0 }
        return
            "\(number("exchanges")), answered here: \(number("local_replies")); callers connected: \(number("connections")), "
            + "tunnels: \(number("tunnels"))"
    }

    private static func outages(_ outages: JSONValue, now: Int64) -> [String] {
        (outages.objectValue ?? [:]).sorted { $0.key < $1.key }.map { upstream, outage in
            let (since, last) = (outage["since"]?.integerValue ?? 0, outage["last"]?.integerValue ?? 0)
            let count = outage["failures"]?.integerValue ?? 0
            let some = outage["partial"] == .bool(true) ? "some requests" : "all requests"
            return line(
                "upstream",
                "\(upstream): \(some) since \(moment(since, now: now)) failed (\(count), the last "
                    + "\(moment(last, now: now))): \(text(outage["reason"]))")
        }
    }

    /// Returns a line for each login of each upstream.
    static func logins(of upstreams: JSONValue) -> [String] {
        var lines: [String] = []
        for (upstream, logins) in (upstreams.objectValue ?? [:]).sorted(by: { $0.key < $1.key }) {
            for login in values(logins) {
                var line = self.line("session", "\(upstream)/\(text(login["challenge"]))")
                if let name = login["credential"]?.stringValue, !name.isEmpty { line += " by \(name)" }
                if let scope = login["scope"]?.stringValue, !scope.isEmpty { line += " [\(scope)]" }
                let asks = values(login["asks"]).map { text($0) }
                if !asks.isEmpty { line += " (\(asks.joined(separator: ", ")))" }
                line += ": \(text(login["state"]))"
                if let seconds = login["held_seconds"]?.integerValue, seconds > 0 { line += " for \(time(seconds))" }
                if login["taken_over"] == .bool(true) { line += ", taken over" }
                if login["bound_user_agent"] != nil {
                    line += ", bound to the User-Agent \(text(login["bound_user_agent"]))"
                }
                if let count = login["renewals"]?.integerValue, count > 0 { line += ", renewed \(count) times" }
                if let seconds = login["renews_in"]?.integerValue { line += ", renews in \(time(seconds))" }
                if let seconds = login["expires_in"]?.integerValue {
                    line += ", expires in \(time(seconds))"
                }
                if let count = login["waiters"]?.integerValue { line += ", \(count) requests wait" }
                if let code = login["code"]?.stringValue { line += " (\(code))" }
                lines.append(line)
            }
        }
        return lines
    }

    private static func line(_ name: String, _ text: String) -> String {
        name + String(repeating: " ", count: max(1, 10 - name.count)) + text
    }

    /// Returns a Unix time in seconds as `2026-11-26 07:13:23Z (2 h 5 min ago)`.
    private static func moment(_ seconds: Int64, now: Int64) -> String {
        let civil = CivilTime(millisecondsSince1970: seconds.saturatingMultiply(1000))
        let (date, ago) = (civil.date, max(0, now.saturatingSubtract(seconds)))
        return "\(date.year.padded(to: 4))-\(date.month.padded(to: 2))-\(date.day.padded(to: 2)) "
            + "\(civil.hour.padded(to: 2)):\(civil.minute.padded(to: 2)):\(civil.second.padded(to: 2))Z "
            + (ago == 0 ? "(now)" : "(\(time(ago)) ago)")
    }

    private static func time(_ seconds: Int64) -> String {
        readableTime(milliseconds: seconds.saturatingMultiply(1000))
    }

    private static func text(_ value: JSONValue?) -> String { value?.stringValue ?? "?" }

    private static func values(_ value: JSONValue?) -> [JSONValue] {
        if case .array(let values)? = value { values } else { [] }
    }
}
