// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Entries of a session table by key, with an index for each question about several of them.
///
/// A login thus costs as much as its siblings, however many sessions are held. Each change of an entry updates the indexes.
struct SessionEntries<Waiter: Sendable & Equatable>: Sendable {
    /// All entries by key.
    private(set) var all: [SessionKey: SessionEntry<Waiter>] = [:]
    /// Keys whose last login failed.
    private(set) var failing: Set<SessionKey> = []
    /// Keys that differ at most in their scope, by the key without a scope.
    private var siblings: [SessionKey: Set<SessionKey>] = [:]
    /// Keys of the sessions that send or have submitted a value, by the key of its latch.
    private var users: [LatchKey: Set<SessionKey>] = [:]
    /// Kept sessions by the time of their next login.
    private var schedule = SessionSchedule()

    /// Number of entries.
    var count: Int { all.count }

    /// Entry of `key`; `nil` removes it.
    subscript(key: SessionKey) -> SessionEntry<Waiter>? {
        get { all[key] }
        _modify {
            let before = IndexedEntry(all[key])
            let former = before.generations == (0, 0) ? [] : Self.uses(of: all[key])
            defer { reindex(key, from: before, former) }
            yield &all[key]
        }
    }

    /// Returns the keys that differ from `key` at most in their scope, itself included if it has an entry.
    func siblings(of key: SessionKey) -> Set<SessionKey> { siblings[key.withoutScope] ?? [] }

    /// Returns the keys of the sessions that send, or have submitted, a value of the latch `key`.
    func users(of key: LatchKey) -> Set<SessionKey> { users[key] ?? [] }

    /// Replaces the keys whose sessions are kept without a request.
    mutating func keep(_ keys: [SessionKey]) {
        schedule = SessionSchedule(keys.map { ($0, all[$0]?.dueAt ?? .min) })
    }

    /// Returns the kept keys whose login may be due at `now` (ms since 1970).
    mutating func dueKeys(now: Int64) -> [SessionKey] { schedule.due(now: now) }

    private mutating func reindex(_ key: SessionKey, from before: IndexedEntry, _ former: [LatchKey]) {
        let after = IndexedEntry(all[key])
        if after.exists != before.exists { siblings[key.withoutScope].set(key, isMember: after.exists) }
        if after.isFailing != before.isFailing {
            if after.isFailing { failing.insert(key) } else { failing.remove(key) }
        }
        if after.generations != before.generations {
            for use in former { users[use].set(key, isMember: false) }
            for use in Self.uses(of: all[key]) { users[use].set(key, isMember: true) }
        }
        if after.dueAt != before.dueAt { schedule.set(key, dueAt: after.dueAt) }
    }

    private static func uses(of entry: SessionEntry<Waiter>?) -> [LatchKey] {
        [entry?.held, entry?.unverified].flatMap { held in
            [held?.session.use?.key, held?.session.submission?.use.key].compactMap(\.self)
        }
    }

    /// Part of an entry on which the indexes depend.
    private struct IndexedEntry {
        var exists = false
        var isFailing = false
        /// Generations of the held and of the unverified session, 0 without one: a session never changes.
        var generations: (held: UInt64, unverified: UInt64) = (0, 0)
        var dueAt = Int64.min

        init(_ entry: SessionEntry<Waiter>?) {
            guard let entry else { return }
            exists = true
            isFailing = entry.backOff.failure != nil
            generations = (entry.held?.generation ?? 0, entry.unverified?.generation ?? 0)
            dueAt = entry.dueAt
        }
    }
}

extension Optional<Set<SessionKey>> {
    /// Inserts or removes `key`; an empty set becomes nil.
    fileprivate mutating func set(_ key: SessionKey, isMember: Bool) {
        var keys = self ?? []
        self = nil
        if isMember { keys.insert(key) } else { keys.remove(key) }
        if !keys.isEmpty { self = keys }
    }
}

/// State of one key in a table.
struct SessionEntry<Waiter: Sendable & Equatable>: Sendable {
    var held: HeldSession?
    var isLoggingIn = false
    /// Waiting exchanges with the addresses of their requests.
    var waiters: [(waiter: Waiter, address: String?)] = []
    /// Pause after a failed login.
    var backOff = BackOff()
    /// Latch that ended the last login.
    var latch: LatchKey?
    var unverified: HeldSession?
    /// Exchanges that try the session, and fruitless trials before.
    var trials = SessionTrials<Waiter>()
    /// Value of the last unverified session.
    var tried: [String: Secret]?
    /// Renewals of new sessions because of refusals.
    var earlyRenewals = EarlyRenewals()
    /// Number of the last confirmation.
    var confirmation: UInt64 = 0
    /// What a request without a session has shown.
    var firstRequest = FirstRequest<Waiter>.unknown
    /// `User-Agent` of the requests with its sessions.
    var userAgent = SessionUserAgent.callers(until: .min)
    /// Session whose last confirmations had no usable answer, the end of the pause, and their number.
    var unconfirmed: (generation: UInt64, until: Int64, count: Int)?
}

extension SessionEntry {
    /// Earliest time in ms since 1970 at which a login without a request may begin; `.max` while one runs.
    var dueAt: Int64 {
        guard !isLoggingIn, trials.isEmpty else { return .max }
        guard let session = held ?? unverified else {
            return max(backOff.until, backOff.failure.map { $0.at.saturatingAdd(Self.recoveryPause) } ?? .min)
        }
        return max(backOff.until, min(session.renewAt ?? .max, session.session.expiresAt ?? .max))
    }

    /// Pause in ms before a failed login that no request needs is tried again.
    static var recoveryPause: Int64 { 5_000 }
}

extension SessionKey {
    /// The key with an empty scope, equal for all siblings.
    package var withoutScope: SessionKey {
        if scope.isEmpty { return self }
        return SessionKey(origin: origin, challenge: challenge, credential: credential)
    }

    /// Returns true if the keys differ at most in their scope.
    package func isSibling(of other: SessionKey) -> Bool {
        origin == other.origin && challenge == other.challenge && credential == other.credential
    }
}
