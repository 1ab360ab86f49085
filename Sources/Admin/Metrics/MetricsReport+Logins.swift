// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling

// The metrics of logins, sessions and latches.
extension MetricsReport {
    func writeLogins(to text: inout MetricsText) {
        text.family(
            "logins", .counter,
            "Logins that ended, by challenge (for a MobileFirst server, the name of the upstream), kind (login or renewal) and outcome: succeeded, or the code of the failure."
        )
        let counts = logins.counts.sorted {
            ($0.key.challenge, $0.key.kind, $0.key.outcome) < ($1.key.challenge, $1.key.kind, $1.key.outcome)
        }
        for (login, count) in counts {
            text.sample(
                [("challenge", login.challenge), ("kind", login.kind), ("outcome", login.outcome)], count)
        }
        text.family(
            "login_duration_seconds", .histogram, unit: "seconds", "Duration of logins and renewals, by challenge.")
        for (challenge, durations) in logins.durations.sorted(by: { $0.key < $1.key }) {
            text.histogram([("challenge", challenge)], durations)
        }
        text.family("logouts", .counter, "Logouts at servers, by challenge and outcome: done or failed.")
        for (logout, count) in logins.logouts.sorted(by: { $0.key.challenge < $1.key.challenge }) {
            text.sample([("challenge", logout.challenge), ("outcome", logout.isDone ? "done" : "failed")], count)
        }
        writeStates(to: &text)
        text.family(
            "latches", .gauge,
            "Closed latches, that is, rejected credentials that are not sent again, by challenge and reason.")
        let latches = Dictionary(grouping: health.latches, by: \.challenge)
        for name in challengeNames {
            for reason in [Latch.Reason.locked, .rejected] {
                let closed = latches[name]?.count { $0.latch.reason == reason } ?? 0
                text.sample([("challenge", name), ("reason", reason.rawValue)], closed)
            }
        }
    }

    private func writeStates(to text: inout MetricsText) {
        let groups = sessionGroups
        text.family(
            "sessions", .gauge,
            "Sessions by upstream, challenge and state: held, logging-in, failing (the last login failed, even while another one runs), cold (no login was needed yet). Several if there are several scopes."
        )
        for group in groups {
            for state in ["cold", "failing", "held", "logging-in"] {
                let count = group.logins.count { $0.metricState == state }
                text.sample(group.labels + [("state", state)], count)
            }
        }
        text.family(
            "session_expiry_timestamp_seconds", .gauge, unit: "seconds",
            "Unix time at which the first session of a challenge expires; no sample without a session or a known expiry."
        )
        for group in groups {
            let ends = group.logins.compactMap { login -> Int64? in
                if case .held(let held) = login.sessionState { held.session.expiresAt } else { nil }
            }
            guard let first = ends.min() else { continue }
            text.sample(group.labels, MetricsText.timestamp(milliseconds: first))
        }
        text.family("login_waiters", .gauge, "Exchanges that are waiting for a login.")
        for group in groups {
            let waiters = group.logins.reduce(0) { sum, login in
                if case .loggingIn(let waiters, _) = login.sessionState { sum + waiters } else { sum }
            }
            text.sample(group.labels, waiters)
        }
    }

    /// The logins grouped by upstream and challenge. Scopes are not labels, because the upstream chooses their names.
    private var sessionGroups: [(labels: MetricsText.Labels, logins: [HealthReport.Login])] {
        var groups: [(labels: MetricsText.Labels, logins: [HealthReport.Login])] = []
        var indices: [[String]: Int] = [:]
        for login in health.logins {
            if let known = indices[[login.upstream, login.challenge]] {
                groups[known].logins.append(login)
                continue
            }
            indices[[login.upstream, login.challenge]] = groups.count
            groups.append(
                ([(name: "upstream", value: login.upstream), (name: "challenge", value: login.challenge)], [login]))
        }
        return groups
    }

    /// The challenges that may have a latch.
    private var challengeNames: [String] {
        let configured = health.logins.flatMap { $0.asks.isEmpty ? [$0.challenge] : $0.asks }
        return Set(configured + health.latches.map(\.challenge)).sorted()
    }
}

extension HealthReport.Login {
    /// The state for `countersign_sessions`: an attempt to recover does not interrupt `failing`, for which alerts wait.
    fileprivate var metricState: String { sessionState.failure == nil ? state : "failing" }
}

extension LoginCount {
    fileprivate var kind: String { isRenewal ? "renewal" : "login" }
    fileprivate var outcome: String { failure?.rawValue ?? "succeeded" }
}

// The metrics of sessions shared between nodes, if sharing is configured.
extension MetricsReport {
    func writeSharing(to text: inout MetricsText) {
        guard let sharing = health.sharing else { return }
        text.family("session_store_up", .gauge, "1 if the session store answers, else 0.")
        text.sample(sharing.isStoreReachable ? 1 : 0)
        text.family(
            "session_store_requests", .counter,
            "Requests to the session store, by outcome: answered, or unanswered within the timeout.")
        text.sample([("outcome", "answered")], Int(clamping: sharing.requests &- sharing.unanswered))
        text.sample([("outcome", "unanswered")], Int(clamping: sharing.unanswered))
        text.family(
            "shared_sessions", .counter,
            "Shared sessions, by outcome on this node: published, taken from another node, or unusable."
        )
        text.sample([("outcome", "published")], Int(clamping: sharing.published))
        text.sample([("outcome", "taken")], Int(clamping: sharing.taken))
        text.sample([("outcome", "unusable")], Int(clamping: sharing.unusable))
        text.family(
            "shared_logins", .counter,
            "Logins of shared sessions, by turn: with a lease, or alone because the session store was away."
        )
        text.sample([("turn", "lease")], Int(clamping: sharing.leases))
        text.sample([("turn", "alone")], Int(clamping: sharing.alone))
        text.family(
            "shared_failures", .counter, "Failed logins of other nodes that were used as the result on this node.")
        text.sample(Int(clamping: sharing.failures))
    }
}
