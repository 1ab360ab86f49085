// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
package import ChallengeHandling

/// One thing that can be well or not.
struct HealthCheck: Sendable {
    /// Its name, by which it can be left out: `workers`, `listeners`, an upstream's, or an upstream's and a challenge's with a
    /// slash between them.
    var name: String
    /// How it stands, in a word.
    var state: String
    /// What is wrong, if something is.
    var problem: String?
    /// Other names that it can be left out by: its upstream's, its challenge's.
    var otherNames: [String] = []
}

/// What `/livez`, `/readyz` and `/healthz` answer: whether all is well that was asked about, and what is not.
package struct HealthDocument: Sendable {
    /// The three questions.
    package enum Question: String, Sendable, CaseIterable {
        /// Do the loops turn? Where not, only a restart helps.
        case alive = "/livez"
        /// Can requests be expected to be served?
        case ready = "/readyz"
        /// Both.
        case healthy = "/healthz"
    }

    /// Whether all is well that was not left out.
    package let isWell: Bool
    private let question: Question
    private let checks: [HealthCheck]
    private let excluded: [HealthCheck]
    private let unknown: [String]

    /// The answer of `report` to a question, less the checks that `names` leave out.
    package init(_ question: Question, of report: HealthReport, excluding names: [String] = []) {
        self.question = question
        let all = report.checks(for: question)
        func isExcluded(_ check: HealthCheck) -> Bool {
            names.contains { $0 == check.name || check.otherNames.contains($0) }
        }
        excluded = all.filter(isExcluded)
        checks = all.filter { !isExcluded($0) }
        unknown = names.filter { name in !all.contains { $0.name == name || $0.otherNames.contains(name) } }
        isWell = checks.allSatisfy { $0.problem == nil }
    }

    /// What is not well, in sentences.
    package var reasons: [String] {
        checks.compactMap { check in check.problem.map { "\(check.name): \($0)" } }
    }

    /// As JSON: `status`, `reasons`, and `checks` with the state of each; what was left out, and what could not be.
    package var json: [String: JSONValue] {
        var object: [String: JSONValue] = [
            "status": .string((isWell ? "" : "not ") + question.word),
            "reasons": .array(reasons.map { .string($0) }),
            "checks": .object(
                Dictionary(checks.map { ($0.name, .string($0.state)) }, uniquingKeysWith: { first, _ in first })),
        ]
        if !excluded.isEmpty { object["excluded"] = .array(excluded.map { .string($0.name) }) }
        if !unknown.isEmpty {
            let known = (checks + excluded).map(\.name).joined(separator: ", ")
            object["warnings"] = .array(
                unknown.map { .string("exclude=\($0): there is no such check; there are \(known)") })
        }
        return object
    }
}

extension HealthDocument.Question {
    fileprivate var word: String {
        switch self {
        case .alive: "alive"
        case .healthy: "healthy"
        case .ready: "ready"
        }
    }
}

extension HealthReport {
    func checks(for question: HealthDocument.Question) -> [HealthCheck] {
        let loops = HealthCheck(
            name: "workers", state: isAlive ? "turning" : "stuck",
            problem: isAlive ? nil : "a worker's loop does not turn; the log and a restart help")
        switch question {
        case .alive: return [loops]
        case .healthy: return [loops] + readinessChecks
        case .ready: return readinessChecks
        }
    }

    private var readinessChecks: [HealthCheck] {
        let listeners = HealthCheck(
            name: "listeners", state: isAccepting ? "accepting" : "closed",
            problem: isAccepting ? nil : "the daemon is shutting down")
        var checks = [listeners]
        for upstream in upstreams {
            checks.append(check(of: upstream))
            // One for all scopes of a login: what those are called the upstream decides.
            for login in logins where login.upstream == upstream {
                let name = "\(upstream)/\(login.challenge)"
                let known = checks.firstIndex { $0.name == name }
                let next = HealthCheck(
                    name: name, state: login.state, problem: login.problem,
                    otherNames: [upstream, login.challenge] + login.asks)
                guard let known else {
                    checks.append(next)
                    continue
                }
                if checks[known].problem == nil, next.problem != nil || checks[known].state == "cold" {
                    checks[known] = next
                }
            }
        }
        // Without it this host goes on with what it holds, and logs in by itself: to be told, and no reason to send nobody here.
        if let fleet {
            checks.append(HealthCheck(name: "session-engine", state: fleet.isEngineThere ? "there" : "away"))
        }
        return checks
    }

    private func check(of upstream: String) -> HealthCheck {
        switch self.checks[upstream]?.state {
        case nil: HealthCheck(name: upstream, state: "unchecked")
        case .down(let reason): HealthCheck(name: upstream, state: "down", problem: "its check failed: \(reason)")
        case .unknown: HealthCheck(name: upstream, state: "unknown")
        case .up: HealthCheck(name: upstream, state: "up")
        }
    }
}

extension HealthReport.Login {
    /// How it stands, in a word.
    var state: String {
        switch standing {
        case .cold: "cold"
        case .failing: "failing"
        case .held: "held"
        case .winning: "winning"
        }
    }

    fileprivate var problem: String? {
        guard case .failing(let failure) = standing else { return nil }
        return "\(failure.code.rawValue): \(failure.detail)"
    }
}
