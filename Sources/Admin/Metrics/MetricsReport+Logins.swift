// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling

// The logins: what was counted, and how they stand.
extension MetricsReport {
    func writeLogins(to text: inout MetricsText) {
        text.family(
            "logins", .counter,
            "Logins that ended, by challenge (that of a MobileFirst server has the name of its upstream), kind (login or renewal) and outcome: won, or the code of the failure."
        )
        let counts = logins.counts.sorted {
            ($0.key.challenge, $0.key.kind, $0.key.outcome) < ($1.key.challenge, $1.key.kind, $1.key.outcome)
        }
        for (login, count) in counts {
            text.sample(
                [("challenge", login.challenge), ("kind", login.kind), ("outcome", login.outcome)], count)
        }
        text.family(
            "login_duration_seconds", .histogram, unit: "seconds", "How long logins and renewals took, by challenge.")
        for (challenge, durations) in logins.durations.sorted(by: { $0.key < $1.key }) {
            text.histogram([("challenge", challenge)], durations)
        }
        text.family("logouts", .counter, "Sessions that were to be ended at their servers, by challenge and outcome.")
        for (logout, count) in logins.logouts.sorted(by: { $0.key.challenge < $1.key.challenge }) {
            text.sample([("challenge", logout.challenge), ("outcome", logout.isDone ? "done" : "failed")], count)
        }
        writeStandings(to: &text)
        text.family(
            "latches", .gauge, "Latches that are closed: credentials that were rejected and are not sent again.")
        for name in challengeNames {
            for reason in [Latch.Reason.locked, .rejected] {
                let closed = health.latches.count { $0.challenge == name && $0.latch.reason == reason }
                text.sample([("challenge", name), ("reason", reason.rawValue)], closed)
            }
        }
    }

    private func writeStandings(to text: inout MetricsText) {
        let groups = sessionGroups
        text.family(
            "sessions", .gauge,
            "Sessions by upstream, challenge and state: held, winning (a login runs), failing (the last login failed), cold (nobody has asked). Several where scopes differ."
        )
        for group in groups {
            for state in ["cold", "failing", "held", "winning"] {
                let count = group.logins.count { $0.state == state }
                text.sample(group.labels + [("state", state)], count)
            }
        }
        text.family(
            "session_expires_in_seconds", .gauge, unit: "seconds",
            "Seconds until the first session of an upstream's challenge ends; none where no session is held or no end is known."
        )
        for group in groups {
            let ends = group.logins.compactMap { login -> Int64? in
                if case .held(let held) = login.standing { held.session.expiresAt } else { nil }
            }
            guard let first = ends.min() else { continue }
            let milliseconds = UInt64(clamping: first.saturatingSubtract(health.now))
            text.sample(group.labels, MetricsText.seconds(nanoseconds: milliseconds &* 1_000_000))
        }
        text.family("login_waiters", .gauge, "Exchanges that wait for a login now.")
        for group in groups {
            let waiters = group.logins.reduce(0) { sum, login in
                if case .winning(let waiters) = login.standing { sum + waiters } else { sum }
            }
            text.sample(group.labels, waiters)
        }
    }

    /// The logins of each upstream's challenge, whatever their scopes: what those are called the upstream decides.
    private var sessionGroups: [(labels: MetricsText.Labels, logins: [HealthReport.Login])] {
        var groups: [(labels: MetricsText.Labels, logins: [HealthReport.Login])] = []
        for login in health.logins {
            let labels = [(name: "upstream", value: login.upstream), (name: "challenge", value: login.challenge)]
            let known = groups.firstIndex { $0.labels.map(\.value) == labels.map(\.value) }
            if let known { groups[known].logins.append(login) } else { groups.append((labels, [login])) }
        }
        return groups
    }

    /// The challenges that a latch may close for.
    private var challengeNames: [String] {
        let configured = health.logins.flatMap { $0.asks.isEmpty ? [$0.challenge] : $0.asks }
        return Set(configured + health.latches.map(\.challenge)).sorted()
    }
}

extension LoginCount {
    fileprivate var kind: String { isRenewal ? "renewal" : "login" }
    fileprivate var outcome: String { failure?.rawValue ?? "won" }
}
