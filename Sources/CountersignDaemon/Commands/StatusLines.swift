// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// The daemon's report for people.
enum StatusLines {
    /// All of it.
    static func lines(of report: JSONValue) -> [String] {
        var lines = ["status    \(text(report["status"])) (version \(text(report["version"])))"]
        for reason in values(report["reasons"]) { lines.append("reason    \(text(reason))") }
        for (name, value) in (report["figures"]?.objectValue ?? [:]).sorted(by: { $0.key < $1.key }) {
            lines.append("figure    \(name) \(value.integerValue ?? 0)")
        }
        lines += logins(of: report["upstreams"] ?? .null)
        if let engine = report["session_engine"] {
            let seconds = engine["for_seconds"]?.integerValue ?? 0
            let reason = engine["detail"]?.stringValue.map { " (\($0))" } ?? ""
            lines.append("engine    \(text(engine["state"])) for \(seconds) s\(reason)")
        }
        for latch in values(report["latches"]) {
            lines.append("latch     \(text(latch["challenge"])): \(text(latch["detail"]))")
        }
        return lines
    }

    /// A line for each login of each upstream.
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
                if let seconds = login["expires_in"]?.integerValue { line += ", ends in \(seconds) s" }
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
