// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
package import ChallengeHandling
package import SharedSessions

/// The session store as a value, with the effect, reply and events of each request.
///
/// The scripts that a real session store runs are compared with it, and the simulated groups of nodes run on it. All times are milliseconds by the session store's own
/// clock, since 1970.
package struct SessionStoreModel: Sendable {
    /// Records of the session of one name.
    package struct Entry: Sendable {
        /// Lease counter: the generation given out last. Without a counter (a first start, or lost data) counting
        /// begins with the clock, so that no generation is given out twice.
        package var fence: UInt64?
        /// The lease. It stays when its time is over, until another is granted: "run out" only means that another *may* be.
        package var lease: Lease?
        /// Token and generation of the lease that ended last, so that a lost answer can be repeated.
        package var ended: (token: LeaseToken, generation: UInt64)?
        /// The session that was published last.
        package var session: Stored?
        /// Failure of the last login, end of its pause, and number of consecutive failures.
        package var failure: (bytes: [UInt8], until: Int64, count: Int)?
    }

    /// The right to log in.
    package struct Lease: Sendable {
        /// Token of its holder.
        package var token: LeaseToken
        /// Generation of the session that is established under it.
        package var generation: UInt64
        /// End of the lease.
        package var until: Int64
    }

    /// A session.
    package struct Stored: Sendable {
        /// Its generation.
        package var generation: UInt64
        /// Sealed session.
        package var bytes: [UInt8]
        /// End of the session.
        package var until: Int64
    }

    /// Most latches; beyond it, the earliest is removed.
    package static let mostLatches = 1024

    /// The longest wait for another session of the account.
    package static let turnWait = Duration.milliseconds(500)

    /// All sessions by name.
    package private(set) var entries: [String: Entry] = [:]
    /// The one lease among the sessions of an account, by account.
    private var turns: [String: (token: LeaseToken, until: Int64)] = [:]
    /// The latches by digest.
    package private(set) var latches: [String: SharedLatch] = [:]
    /// Number of changes of latches and used codes, counted from the clock; 0 before the first.
    package private(set) var latchCount: UInt64 = 0
    /// The last used steps of one-time codes.
    package private(set) var usedCodes = UsedCodes()
    private var events: [StoreEvent] = []

    /// Creates a session store without data.
    package init() {}

    /// Returns the events since the last call.
    package mutating func takeEvents() -> [StoreEvent] {
        defer { events = [] }
        return events
    }

    /// Carries out `request` for the session of `name`, as a whole.
    package mutating func carryOut(_ request: StoreRequest, for name: String, now: Int64) -> StoreReply {
        var entry = entries[name] ?? Entry()
        let reply = reply(request, &entry, name, now)
        entries[name] = entry
        return reply
    }

    /// Closes latches that no login under a lease has closed.
    package mutating func close(_ closed: [SharedLatch], now: Int64) {
        guard !closed.isEmpty else { return }
        for latch in closed { latches[latch.digest] = latch }
        latches = latches.filter { $0.value.latch.opensAt.map { $0 > now } ?? true }
        let earliest = latches.values.sorted { ($0.latch.closedAt, $0.digest) < ($1.latch.closedAt, $1.digest) }
        for latch in earliest.prefix(max(0, latches.count - Self.mostLatches)) { latches[latch.digest] = nil }
        count(now)
    }

    /// Opens all latches of a challenge; how many there were.
    package mutating func open(challenge: String, now: Int64) -> Int {
        let opened = latches.values.filter {
            $0.challenge == challenge && $0.latch.opensAt.map { $0 > now } ?? true
        }
        for latch in opened { latches[latch.digest] = nil }
        if !opened.isEmpty { count(now) }
        return opened.count
    }

    /// Marks steps of one-time codes as used.
    package mutating func markUsed(_ codes: UsedCodes, now: Int64) {
        usedCodes.merge(codes)
        usedCodes = UsedCodes(ends: usedCodes.ends.filter { $0.value > now - 7_200_000 })
        count(now)
    }

    private mutating func count(_ now: Int64) {
        latchCount = (latchCount == 0 ? UInt64(max(now, 0)) : latchCount) + 1
        events.append(.attemptsChanged(count: latchCount))
    }

    private mutating func reply(_ request: StoreRequest, _ entry: inout Entry, _ name: String, _ now: Int64)
        -> StoreReply
    {
        switch request {
        case .acquire(let after, let token, let life):
            return entry.later(than: after, now) ?? acquire(after, token, life, &entry, name, now)
        case .extend(let token, let generation, let life):
            guard entry.isLeased(token, generation) else { return .stale }
            entry.lease?.until = now + life.milliseconds
            if turn(of: name, now).map({ $0.token == token }) ?? true { take(name, token, life, now) }
            return .done(generation: generation)
        case .publish(let token, let generation, let session, let life):
            yield(name, token)
            guard entry.isLeased(token, generation) || entry.fence == nil else {
                return entry.hasEnded(token, generation) ? .done(generation: generation) : .stale
            }
            entry.fence = entry.fence ?? max(UInt64(max(now, 0)), generation)
            entry.ended = (token, generation)
            store(session, generation, life, &entry, name, now)
            return .done(generation: generation)
        case .fail(let token, let generation, let failure, let pause, let longest, let latches):
            yield(name, token)
            if entry.hasEnded(token, generation) { return .done(generation: generation) }
            // The rejection is real, no matter which node holds the lease by now.
            close(latches, now: now)
            guard entry.isLeased(token, generation) else { return .stale }
            entry.lease = nil
            entry.ended = (token, generation)
            entry.fail(failure, pause.milliseconds, longest.milliseconds, now)
            events.append(.sessionChanged(name: name, generation: generation))
            return .done(generation: generation)
        case .offer(let after, let session, let life):
            if let later = entry.later(than: after, now) { return later }
            let generation = entry.next(after: after, now)
            if let lease = entry.lease { yield(name, lease.token) }
            store(session, generation, life, &entry, name, now)
            return .done(generation: generation)
        case .fetch(let after):
            return entry.later(than: after, now) ?? .nothing
        case .drop(let generation):
            let isThere = entry.live(now).map { $0.generation <= generation } ?? false
            guard isThere || entry.failure != nil else { return .nothing }
            if isThere { entry.session = nil }
            entry.failure = nil
            events.append(.sessionChanged(name: name, generation: generation))
            return .done(generation: generation)
        }
    }

    private func turn(of name: String, _ now: Int64) -> (token: LeaseToken, until: Int64)? {
        turns[StoreName.account(of: name)].flatMap { $0.until > now ? $0 : nil }
    }

    private mutating func take(_ name: String, _ token: LeaseToken, _ life: Duration, _ now: Int64) {
        turns[StoreName.account(of: name)] = life > .zero ? (token, now + life.milliseconds) : nil
    }

    private mutating func yield(_ name: String, _ token: LeaseToken) {
        let account = StoreName.account(of: name)
        if turns[account]?.token == token { turns[account] = nil }
    }

    private mutating func acquire(
        _ after: UInt64, _ token: LeaseToken, _ life: Duration, _ entry: inout Entry, _ name: String, _ now: Int64
    ) -> StoreReply {
        let turn = turn(of: name, now)
        if let lease = entry.lease, lease.token == token, turn.map({ $0.token == token }) ?? true {
            entry.lease?.until = now + life.milliseconds
            take(name, token, life, now)
            return .granted(generation: lease.generation, latches: latchCount)
        }
        if let failure = entry.failure, failure.until > now {
            return .failed(failure.bytes, for: .milliseconds(failure.until - now))
        }
        if let lease = entry.lease, lease.until > now { return .wait(.milliseconds(lease.until - now)) }
        if let turn, turn.token != token {
            return .wait(min(.milliseconds(turn.until - now), Self.turnWait))
        }
        let generation = entry.next(after: after, now)
        take(name, token, life, now)
        entry.lease = Lease(token: token, generation: generation, until: now + life.milliseconds)
        return .granted(generation: generation, latches: latchCount)
    }

    private mutating func store(
        _ session: [UInt8], _ generation: UInt64, _ life: Duration, _ entry: inout Entry, _ name: String, _ now: Int64
    ) {
        entry.session = Stored(generation: generation, bytes: session, until: now + life.milliseconds)
        entry.lease = nil
        entry.failure = nil
        events.append(.sessionChanged(name: name, generation: generation))
    }
}

extension SessionStoreModel.Entry {
    func live(_ now: Int64) -> SessionStoreModel.Stored? { session.flatMap { $0.until > now ? $0 : nil } }

    func later(than generation: UInt64, _ now: Int64) -> StoreReply? {
        guard let live = live(now), live.generation > generation else { return nil }
        return .session(generation: live.generation, live.bytes)
    }

    func isLeased(_ token: LeaseToken, _ generation: UInt64) -> Bool {
        lease?.token == token && lease?.generation == generation
    }

    func hasEnded(_ token: LeaseToken, _ generation: UInt64) -> Bool {
        ended?.token == token && ended?.generation == generation
    }

    mutating func next(after: UInt64, _ now: Int64) -> UInt64 {
        let next = max(fence ?? UInt64(max(now, 0)), after) + 1
        fence = next
        return next
    }

    /// A pause of nothing only gives the lease back.
    mutating func fail(_ bytes: [UInt8], _ pause: Int64, _ longest: Int64, _ now: Int64) {
        guard pause > 0 else { return }
        let count = (failure?.count ?? 0) + 1
        let doubled = pause.multipliedReportingOverflow(by: 1 << Int64(min(count - 1, 40)))
        failure = (bytes, now + min(doubled.overflow ? longest : doubled.partialValue, longest), count)
    }
}
