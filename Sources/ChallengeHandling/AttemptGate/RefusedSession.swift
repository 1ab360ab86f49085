// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Consequence of a refusal of a held session that sends no credential (CONTRIBUTING, rule 4).
package enum RefusalAnswer: Sendable, Equatable {
    /// Confirm the session at another address that accepted it.
    case confirm
    /// Pass the refusal to the caller.
    case pass
    /// Establish another session.
    case renew
}

extension SessionTable {
    /// Time in ms for which a session is new, and at least between renewals because of refusals at distinct addresses.
    static var renewalPause: Int64 { 30_000 }

    /// Returns the consequence of a refusal at `path` of the held session of that generation.
    ///
    /// Each renewal sends a secret, and one resource is not the session. So a session that is new, or that the server accepted at a
    /// request sent after the refused one (`sentAt`, in ns of the monotonic clock), is confirmed elsewhere first. Without such an
    /// address, only a path that accepted this very session shows its end. `isRead`: the refused request was a GET or HEAD.
    package mutating func answerRefusal(
        _ key: SessionKey, generation: UInt64, at path: String, isRead: Bool, sentAt: UInt64, now: Int64
    ) -> RefusalAnswer {
        guard let held = entries[key]?.held, held.generation == generation, held.session.sendsTokens,
            !held.isExpired(at: now)
        else { return .renew }
        let isNew = held.isNew(at: now)
        guard isNew || held.acceptance.isLater(than: sentAt) else { return .renew }
        let paths = held.acceptance.acceptedPaths
        if paths.contains(where: { $0 != path || !isRead }) { return .confirm }
        // Accepted here before, or where another node or proxy sent it: the end of the session, or a resource that changes its mind.
        let isUsedElsewhere = held.isTakenOver || held.acceptance.wasHandedOut
        let mayHaveEnded = paths.contains(path) || isUsedElsewhere && paths.isEmpty
        return mayHaveEnded && mayRenew(key, generation: generation, now: now) ? .renew : .pass
    }

    /// Returns true if a session that has ended may be renewed now: a few new ones in half a minute, so that a server cannot have
    /// secrets sent again and again.
    package mutating func mayRenew(_ key: SessionKey, generation: UInt64, now: Int64) -> Bool {
        guard let held = entries[key]?.held, held.generation == generation, held.isNew(at: now) else { return true }
        return entries[key]?.earlyRenewals.allows(generation, now: now) ?? true
    }
}

extension HeldSession {
    /// True for half a minute after the login; false also after the clock was set back.
    func isNew(at now: Int64) -> Bool {
        establishedAt <= now && now.saturatingSubtract(establishedAt) < SessionTable<Int>.renewalPause
    }
}

extension Session {
    /// True if requests carry what a login has obtained, not the credential itself, nor what each request makes anew.
    package var sendsTokens: Bool { use == nil && (!fields.isEmpty || cookies != nil) }
}

/// Renewals of sessions that had ended within half a minute after their login.
struct EarlyRenewals: Sendable {
    private static let most = 3
    private var renewals: [(generation: UInt64, at: Int64)] = []

    /// Returns true if the session of that generation may be renewed; all requests that carry it get the same answer.
    mutating func allows(_ generation: UInt64, now: Int64) -> Bool {
        if renewals.contains(where: { $0.generation == generation }) { return true }
        renewals.removeAll { $0.at > now || now.saturatingSubtract($0.at) >= SessionTable<Int>.renewalPause }
        guard renewals.count < Self.most else { return false }
        renewals.append((generation, now))
        return true
    }
}
