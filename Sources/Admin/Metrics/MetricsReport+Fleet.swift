// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient

// The sessions that hosts share: only where this one does.
extension MetricsReport {
    func writeFleet(to text: inout MetricsText) {
        guard let fleet = health.fleet else { return }
        text.family("session_engine_up", .gauge, "Whether the session engine answers.")
        text.sample(fleet.isEngineThere ? 1 : 0)
        text.family(
            "session_engine_requests", .counter,
            "Requests to the session engine about sessions, by whether an answer came in time.")
        text.sample([("outcome", "answered")], Int(clamping: fleet.requests &- fleet.unanswered))
        text.sample([("outcome", "unanswered")], Int(clamping: fleet.unanswered))
        text.family(
            "shared_sessions", .counter,
            "Sessions of the fleet, by what became of them here: published by this host, taken from another, or unusable here."
        )
        text.sample([("outcome", "published")], Int(clamping: fleet.published))
        text.sample([("outcome", "taken")], Int(clamping: fleet.taken))
        text.sample([("outcome", "unusable")], Int(clamping: fleet.unusable))
        text.family(
            "fleet_logins", .counter,
            "Logins of sessions that are shared, by what entitled this host to them: a lease, or nothing, as the engine was away."
        )
        text.sample([("turn", "lease")], Int(clamping: fleet.leases))
        text.sample([("turn", "alone")], Int(clamping: fleet.alone))
        text.family("shared_failures", .counter, "Failures of other hosts' logins that were this one's answer, too.")
        text.sample(Int(clamping: fleet.failures))
    }
}
