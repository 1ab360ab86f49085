// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
import Synchronization

/// Names an exchange that waits for a login, on whichever worker it lives.
package struct ExchangeTicket: Sendable, Equatable, Hashable {
    /// The worker's number.
    package let worker: Int
    /// The exchange's number, unique on that worker.
    package let exchange: UInt64

    /// A ticket.
    package init(worker: Int, exchange: UInt64) {
        self.worker = worker
        self.exchange = exchange
    }
}

/// The one session table that all workers share, behind one short lock.
///
/// The lock is never taken on the hot path: a worker looks at `version`, and takes a fresh snapshot only when that has
/// moved.
package final class SessionDirectory: Sendable {
    /// How a login ended for each exchange that waited for it.
    package typealias Outcomes = [(waiter: ExchangeTicket, outcome: SessionTable<ExchangeTicket>.Outcome)]

    private let table: Mutex<SessionTable<ExchangeTicket>>
    private let counter = Atomic<UInt64>(1)
    private let watcher = Mutex<(@Sendable () -> Void)?>(nil)
    private let chance: @Sendable () -> Double

    /// A directory without sessions; `chance` makes a random number in 0..<1, by which renewals are spread.
    package init(
        limits: SessionLimits = SessionLimits(), chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.chance = chance
        table = Mutex(SessionTable(limits: limits))
    }

    /// Moves with every change of the sessions that are held.
    package var version: UInt64 { counter.load(ordering: .acquiring) }

    /// Has `watcher` told of every change from now on, on whatever thread makes it; it must not block.
    package func watch(_ watcher: @escaping @Sendable () -> Void) { self.watcher.withLock { $0 = watcher } }

    private func moved() {
        counter.wrappingAdd(1, ordering: .releasing)
        watcher.withLock { $0 }?()
    }

    /// See `SessionTable.request`.
    package func request(
        _ key: SessionKey, rejected: UInt64?, waiter: ExchangeTicket, now: Int64
    ) -> SessionTable<ExchangeTicket>.Decision {
        table.withLock { $0.request(key, rejected: rejected, waiter: waiter, now: now) }
    }

    /// See `SessionTable.beginRenewal`.
    package func beginRenewal(_ key: SessionKey, now: Int64) -> Bool {
        table.withLock { $0.beginRenewal(key, now: now) }
    }

    /// See `SessionTable.beginRecovery`.
    package func beginRecovery(_ key: SessionKey, now: Int64) -> Bool {
        table.withLock { $0.beginRecovery(key, now: now) }
    }

    /// See `SessionTable.beginKeeping`.
    package func beginKeeping(_ key: SessionKey, now: Int64) -> Bool {
        table.withLock { $0.beginKeeping(key, now: now) }
    }

    /// See `SessionTable.leave`.
    package func leave(_ key: SessionKey, waiter: ExchangeTicket) {
        table.withLock { $0.leave(key, waiter: waiter) }
    }

    /// See `SessionTable.finish`.
    package func finish(_ key: SessionKey, with result: Result<Session, LoginFailure>, now: Int64) -> Outcomes {
        let chance = chance()
        let outcomes = table.withLock { $0.finish(key, with: result, now: now, chance: chance) }
        moved()
        return outcomes
    }

    /// See `SessionTable.judge`.
    func judge(
        _ key: SessionKey, generation: UInt64, _ proof: SessionTable<ExchangeTicket>.Proof, by waiter: ExchangeTicket
    ) -> Outcomes {
        let outcomes = table.withLock { $0.judge(key, generation: generation, proof, by: waiter) }
        moved()
        return outcomes
    }

    /// See `SessionTable.doubt`.
    func doubt(
        _ key: SessionKey, generation: UInt64, waiter: ExchangeTicket, now: Int64
    ) -> SessionTable<ExchangeTicket>.Doubt {
        let doubt = table.withLock { $0.doubt(key, generation: generation, waiter: waiter, now: now) }
        // A session that is a credential is not to be sent by anybody else meanwhile; others serve on.
        if case .confirm(let session) = doubt, session.session.use != nil { moved() }
        return doubt
    }

    /// See `SessionTable.confirm`.
    func confirm(_ key: SessionKey, generation: UInt64, _ confirmation: SessionConfirmation, now: Int64) -> Outcomes {
        let outcomes = table.withLock { $0.confirm(key, generation: generation, confirmation, now: now) }
        moved()
        return outcomes
    }

    /// See `SessionTable.reject`.
    func reject(_ key: SessionKey, generation: UInt64, _ failure: LoginFailure, now: Int64) -> Outcomes {
        let outcomes = table.withLock { $0.reject(key, generation: generation, failure, now: now) }
        moved()
        return outcomes
    }

    /// See `SessionTable.drop`.
    package func drop(where which: @Sendable (SessionKey) -> Bool) -> [SessionKey] {
        let dropped = table.withLock { $0.drop(where: which) }
        moved()
        return dropped
    }

    /// See `SessionTable.abandon`.
    package func abandon(_ key: SessionKey) -> Outcomes { table.withLock { $0.abandon(key) } }

    /// See `SessionTable.adopt`.
    package func adopt(
        _ key: SessionKey, _ session: Session, wonAt: Int64, now: Int64, replacing: Bool = false
    ) -> Bool {
        let chance = chance()
        let isAdopted = table.withLock {
            $0.adopt(key, session, wonAt: wonAt, now: now, replacing: replacing, chance: chance)
        }
        moved()
        return isAdopted
    }

    /// All sessions held.
    package var allHeld: [SessionKey: HeldSession] { table.withLock { $0.allHeld } }

    /// See `SessionTable.forgetFailures`.
    package func forgetFailures(of challenge: String) { table.withLock { $0.forgetFailures(of: challenge) } }

    /// The session held for `key`.
    package func held(_ key: SessionKey) -> HeldSession? { table.withLock { $0.held(key) } }

    /// See `SessionTable.isThere`.
    func isThere(_ key: SessionKey) -> Bool { table.withLock { $0.isThere(key) } }

    /// See `SessionTable.standing`.
    func standing(of key: SessionKey, now: Int64) -> SessionStanding {
        table.withLock { $0.standing(of: key, now: now) }
    }

    /// The keys of the same login as `key`, whatever their scope, whose last login failed.
    func failing(like key: SessionKey) -> [SessionKey] {
        standings(now: 0).compactMap { other, standing in
            guard case .failing = standing, key.isSibling(of: other) else { return nil }
            return other
        }
    }

    /// How every key stands; for readiness and status.
    package func standings(now: Int64) -> [SessionKey: SessionStanding] { table.withLock { $0.standings(now: now) } }
}
