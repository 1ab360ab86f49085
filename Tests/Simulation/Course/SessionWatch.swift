// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

@testable import ChallengeClient

/// The causes of logins: the judge of rules 4 and 5, by which one resource, or an old session's refusal, ends no session.
///
/// Each login needs a cause: there was no session, it has ended, a login has failed, or a resource has refused it that had not
/// done so for half a minute.
final class SessionWatch {
    private struct Challenge {
        /// Causes that no login has followed yet.
        var causes = 1
        var hasSession = false
        /// True if the server has ended its sessions since the login began.
        var hasEnded = false
        /// Checks of a session without a result.
        var failedLooks = 0
        /// The time at which each resource last was a cause.
        var refusals: [String: Int64] = [:]
        /// The last refusals that the daemon may or may not remember.
        var doubtfulRefusals: [String: Int64] = [:]
    }

    /// The time in ms for which a resource's refusal of a session is remembered, less the time its answer takes.
    private static let refusalSpan: Int64 = 29_500
    /// The time in ms at the end of the span in which a refusal may or may not be known.
    private static let doubt: Int64 = 2_000

    private unowned let simulation: Simulation
    private var challenges: [String: Challenge] = [:]

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Judges the beginning of a login.
    func loginBegan(_ name: String, _ cause: LoginCause.Kind) {
        guard isWatched(name), ![.renewal, .change].contains(cause) else { return }
        var challenge = challenges[name, default: Challenge()]
        challenge.causes -= 1
        challenge.hasEnded = false
        if challenge.causes < 0 { simulation.violated("rule 4: a login of \(name) without a cause") }
        challenges[name] = challenge
    }

    /// Notes the end of a login; `isEstablished`: with a session that adds something to requests.
    func loginEnded(_ name: String, isEstablished: Bool) {
        let hasEnded = challenges[name, default: Challenge()].hasEnded
        challenges[name, default: Challenge()].hasSession = isEstablished && !hasEnded
        challenges[name]?.failedLooks = 0
        if !isEstablished { challenges[name, default: Challenge()].causes += 1 }
    }

    /// Notes that a server has ended its sessions.
    func ended(_ name: String) {
        challenges[name, default: Challenge()].causes += 1
        challenges[name, default: Challenge()].hasSession = false
        challenges[name, default: Challenge()].hasEnded = true
    }

    /// Records that a check of a session had no result: the third in a row ends the session.
    func lookFailed(_ name: String) {
        challenges[name, default: Challenge()].failedLooks += 1
        if challenges[name, default: Challenge()].failedLooks > 2 { challenges[name]?.causes += 1 }
    }

    /// Records that a resource refuses every caller. `isRemembered`: the refusal goes to the caller in any case.
    func refused(_ resource: String, of name: String, isRemembered: Bool) {
        // A check of the proven address shows that the session is valid.
        if isVerifiable(name) { return }
        var challenge = challenges[name, default: Challenge()]
        let last = challenge.refusals[resource]
        if let doubtful = challenge.doubtfulRefusals[resource],
            simulation.now - doubtful < Self.refusalSpan + Self.doubt
        {
            // The time at which the daemon learned of it is unknown, so the end of its span is unknown, too.
            challenge.doubtfulRefusals[resource] = simulation.now
            challenge.causes += 1
        } else if last.map({ simulation.now - $0 >= Self.refusalSpan }) ?? true {
            // The order of the two is unknown: the end of the former one's span, or this one.
            let isAtEnd = last.map { simulation.now - $0 < Self.refusalSpan + Self.doubt } ?? false
            if isRemembered { challenge.refusals[resource] = isAtEnd ? nil : simulation.now }
            challenge.causes += 1
        }
        challenges[name] = challenge
    }

    /// Records that no request is under way: the only remaining cause of a login is a missing session.
    func restBegan() {
        for (name, challenge) in challenges { challenges[name]?.causes = challenge.hasSession ? 0 : 1 }
    }

    /// Records that a caller has left: its answer, and what that would have shown, is unknown.
    func callerLeft() { for name in challenges.keys { isLost(name) } }

    /// Records that a request was not answered by its resource: the resource's answer is unknown.
    func isLost(_ name: String) {
        var challenge = challenges[name, default: Challenge()]
        challenge.causes += 1
        challenge.doubtfulRefusals.merge(challenge.refusals, uniquingKeysWith: max)
        challenge.refusals = [:]
        challenges[name] = challenge
    }

    /// Notes that the configuration is read again: it is forgotten which resources refuse.
    func reloaded() {
        for name in challenges.keys {
            challenges[name]?.refusals = [:]
            challenges[name]?.doubtfulRefusals = [:]
        }
    }

    /// Notes that a process has ended, with its sessions.
    func processEnded() { challenges = [:] }

    /// Returns true if an address of the configuration shows whether a session serves.
    private func isVerifiable(_ name: String) -> Bool {
        simulation.setting.provesAt && simulation.protection(ofLogin: name) is ApplicationForm
    }

    /// Returns true if a session of the challenge ends for known reasons only.
    private func isWatched(_ name: String) -> Bool {
        guard !simulation.weather.hasFaults, !simulation.weather.changesCredentials,
            let protection = simulation.servers.first(where: { $0.protection.challengeName == name })?.protection
        else { return false }
        // Each node remembers for itself which resources refuse.
        if simulation.setting.nodes > 1, simulation.weather.hasRefusals { return false }
        return !protection.account.ridesOnRequests && !protection.isShortLived && protection.hasOneSession
    }
}
