// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Proxy

// The checks that answer the questions of probes.
extension HealthReport {
    func checks(for question: HealthDocument.Question) -> [HealthCheck] {
        let loops = HealthCheck(
            name: "workers", state: isAlive ? "turning" : "stuck",
            problem: isAlive ? nil : "a worker's loop does not turn; look at the log, and restart the daemon")
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
        if daemon?.reload.refusal != nil {
            // Not a problem: the running configuration is the former one, which is complete.
            checks.append(HealthCheck(name: "configuration", state: "reload refused"))
        }
        if let unwritten {
            // Marks of acceptance are only shown.
            let problem = unwritten.isHarmful ? unwritten.sentences.joined(separator: ". ") : nil
            checks.append(HealthCheck(name: "state", state: "unwritten", problem: problem))
        }
        if let missing = missingCallerTokens {
            let problems = missing.sorted { $0.key < $1.key }.map { "the token of \($0.key) is not known: \($0.value)" }
            checks.append(
                HealthCheck(
                    name: "callers", state: problems.isEmpty ? "known" : "unknown",
                    problem: problems.isEmpty ? nil : problems.joined(separator: "; ")))
        }
        let loginsByUpstream = loginsByUpstream
        for upstream in upstreams {
            checks.append(check(of: upstream))
            var indices: [String: Int] = [:]
            // One check for all scopes of a login: their names are the upstream's choice.
            for login in loginsByUpstream[upstream] ?? [] {
                let name = "\(upstream)/\(login.challenge)"
                let known = indices[login.challenge]
                let next = HealthCheck(
                    name: name, state: login.state, problem: login.problem,
                    otherNames: [upstream, login.challenge] + login.asks)
                guard let known else {
                    indices[login.challenge] = checks.count
                    checks.append(next)
                    continue
                }
                if checks[known].problem == nil, next.problem != nil || checks[known].state == "cold" {
                    checks[known] = next
                }
            }
        }
        // Without the store, this node uses its sessions and logs in by itself, so it is still ready.
        if let sharing {
            checks.append(HealthCheck(name: "session-store", state: sharing.isStoreReachable ? "there" : "away"))
        }
        return checks
    }

    private func check(of upstream: String) -> HealthCheck {
        if let outage = outages[upstream], outage.isTotal(at: now) {
            return HealthCheck(
                name: upstream, state: "failing",
                problem: "every request fails, \(outage.failures) so far: \(outage.reason)")
        }
        return switch self.checks[upstream]?.state {
        case nil: HealthCheck(name: upstream, state: "unchecked")
        case .down(let reason): HealthCheck(name: upstream, state: "down", problem: "its check failed: \(reason)")
        case .unknown: HealthCheck(name: upstream, state: "unknown")
        case .up: HealthCheck(name: upstream, state: "up")
        }
    }
}

extension HealthReport.Login {
    /// The state, in one word.
    var state: String {
        switch sessionState {
        case .cold: "cold"
        case .failing: "failing"
        case .held: "held"
        case .loggingIn: "logging-in"
        }
    }

    /// The failure of the last login. A running login is no success yet.
    fileprivate var problem: String? { sessionState.failure.map { "\($0.code.rawValue): \($0.detail)" } }
}
