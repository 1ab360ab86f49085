// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// Whether what somebody waits for is so, by the running daemon's report.
enum Readiness: Equatable {
    case ready
    /// Not now; why.
    case notYet(String)
    /// Not by waiting either: no login has the name that is asked for. Says which there are.
    case unknown(String)

    /// How the whole daemon stands, or the logins that are, or ask, `challenge`.
    init(of challenge: String?, in report: JSONValue) {
        guard report["upstreams"]?.objectValue != nil else {
            self = .notYet(report["detail"]?.stringValue ?? "its answer is no report")
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
            self = .unknown("no login of the daemon has the name \(name): \(known)")
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

/// One login in the report.
private struct Login {
    let upstream: String
    let value: JSONValue

    static func all(in report: JSONValue) -> [Login] {
        (report["upstreams"]?.objectValue ?? [:]).sorted { $0.key < $1.key }.flatMap { upstream, logins in
            Readiness.values(logins).map { Login(upstream: upstream, value: $0) }
        }
    }

    /// What it can be asked for by.
    var names: [String] {
        [value["challenge"]?.stringValue].compactMap(\.self)
            + Readiness.values(value["asks"]).compactMap(\.stringValue)
    }

    /// Why nobody should count on it yet; a login that nobody has asked for is no obstacle.
    var obstacle: String? {
        let name = "\(upstream)/\(value["challenge"]?.stringValue ?? "?")"
        switch value["state"]?.stringValue {
        case "held", "cold": return nil
        case "winning": return "\(name): its login is under way"
        default:
            let code = value["code"]?.stringValue ?? "failing"
            return "\(name): \(code): \(value["detail"]?.stringValue ?? "the log has more")"
        }
    }
}
