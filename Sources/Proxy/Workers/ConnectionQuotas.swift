// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// The connections of callers on all workers: a `QuotaTable` with a lock, taken when a caller connects or leaves.
///
/// The kernel distributes callers among the workers as it likes. If each worker had a share of the limit, one would refuse
/// callers while another has room.
final class ConnectionQuotas: Sendable {
    private let table: Mutex<QuotaTable>

    /// Makes quotas without connections; `nil` for no limit.
    init(limit: Int?) {
        // Root and the daemon's own user could end the daemon anyway.
        table = Mutex(QuotaTable(limit: limit, privileged: [0, geteuid()]))
    }

    /// The limit of connections; `Int.max` without one.
    var limit: Int { table.withLock { $0.limit ?? .max } }

    /// The number of connections.
    var count: Int { table.withLock(\.count) }

    /// True if there are enough connections that their users matter.
    var isScarce: Bool { table.withLock(\.isScarce) }

    /// A copy of the table.
    var current: QuotaTable { table.withLock { $0 } }

    /// Sets another limit. Present connections stay.
    func setLimit(_ limit: Int?) { table.withLock { $0.limit = limit } }

    /// Reserves a part of the connections for each of these listeners.
    func reserve(for listeners: Set<String>) { table.withLock { $0.listeners = listeners } }

    /// Counts a connection, or returns the reason to deny it.
    func enter(_ holder: QuotaHolder, at listener: String) -> QuotaTable.Denial? {
        table.withLock { $0.enter(holder, at: listener) }
    }

    /// Removes a connection that `enter` counted.
    func leave(_ holder: QuotaHolder, at listener: String) { table.withLock { $0.leave(holder, at: listener) } }
}

/// The permit of one connection: at its listener, and among all callers.
struct ConnectionPermit {
    struct Denial {
        /// The reason for metrics and the reply.
        let reason: ConnectionRefusal
        /// The quotas that denied it.
        let quotas: ConnectionQuotas
    }

    /// The user whose quota the connection counts in.
    let holder: QuotaHolder
    /// The name of the listener.
    let listener: String
    private let atListener: ConnectionQuotas
    /// `nil` for callers of the admin listener, who must get in when the daemon is overloaded.
    private let everywhere: ConnectionQuotas?

    init(
        _ holder: QuotaHolder, at listener: ListenerPlan, of atListener: ConnectionQuotas,
        and everywhere: ConnectionQuotas
    ) {
        self.holder = holder
        self.listener = listener.name
        self.atListener = atListener
        self.everywhere = listener.isLocal ? nil : everywhere
    }

    /// Counts the connection, or returns the denial.
    func enter() -> Denial? {
        if let denial = atListener.enter(holder, at: listener) {
            return Denial(reason: denial == .full ? .atListener : .user, quotas: atListener)
        }
        guard let everywhere, let denial = everywhere.enter(holder, at: listener) else { return nil }
        atListener.leave(holder, at: listener)
        return Denial(reason: denial == .full ? .everywhere : .user, quotas: everywhere)
    }

    /// Removes the connection from the counts.
    func leave() {
        atListener.leave(holder, at: listener)
        everywhere?.leave(holder, at: listener)
    }

    func counts(in quotas: ConnectionQuotas) -> Bool { atListener === quotas || everywhere === quotas }
}

/// The user whose quota a connection counts in.
enum QuotaHolder: Hashable, Sendable {
    /// A user of this machine, by uid.
    case user(UInt32)
    /// All callers together whose user the kernel does not report: other machines, other network namespaces.
    case unknown
    /// Callers over TCP that were admitted without a lookup of their user, because no limit was near.
    case unasked
}

/// A table of connections, divided so that no user and no listener can have all of them.
///
/// A user may have half of what all others leave: one alone gets half of the connections, the next one half of the
/// rest, and so on. Half of the connections is reserved for the listeners, in equal parts.
struct QuotaTable {
    /// The reason of a denial.
    enum Denial: Equatable {
        /// The limit is reached, or the rest is reserved for other listeners.
        case full
        /// The user has as many connections as one user may.
        case share
    }

    /// The limit of connections; `nil` for none.
    var limit: Int?
    /// The listeners for which connections are reserved.
    var listeners: Set<String> = []
    /// The number of connections.
    private(set) var count = 0
    /// The number of connections of each user.
    private(set) var held: [QuotaHolder: Int] = [:]
    private var heldAt: [String: Int] = [:]
    /// Users without a quota: those who could end this process anyway.
    private let privileged: Set<UInt32>

    init(limit: Int?, privileged: Set<UInt32> = []) {
        self.limit = limit
        self.privileged = privileged
    }

    /// True if there are enough connections that their users matter.
    var isScarce: Bool { limit.map { count >= $0 / 4 } ?? false }

    /// Counts a connection, or returns the reason to deny it.
    mutating func enter(_ holder: QuotaHolder, at listener: String) -> Denial? {
        if let denial = denial(holder, at: listener) { return denial }
        count += 1
        held[holder, default: 0] += 1
        heldAt[listener, default: 0] += 1
        return nil
    }

    /// Removes a connection that `enter` counted.
    mutating func leave(_ holder: QuotaHolder, at listener: String) {
        count -= 1
        Self.decrement(&held, holder)
        Self.decrement(&heldAt, listener)
    }

    /// Returns true if a caller is admitted once `other` is closed. `other` must be of the same user or of a user with more
    /// connections.
    func admits(
        _ holder: QuotaHolder, at listener: String, inPlaceOf other: QuotaHolder, at otherListener: String
    ) -> Bool {
        let own = held[holder] ?? 0
        guard other == holder || held[other] ?? 0 > own else { return false }
        guard let limit else { return true }
        var kept = kept(of: limit, from: listener)
        // Closing it may only free a connection that is reserved for its own listener.
        if otherListener != listener, listeners.contains(otherListener), heldAt[otherListener] ?? 0 <= share(of: limit)
        {
            kept += 1
        }
        guard count - 1 < limit - kept else { return false }
        return isWithinShare(holder, own: other == holder ? own - 1 : own, of: limit, taken: count - 1)
    }

    private func denial(_ holder: QuotaHolder, at listener: String) -> Denial? {
        guard let limit else { return nil }
        guard count < limit - kept(of: limit, from: listener) else { return .full }
        return isWithinShare(holder, own: held[holder] ?? 0, of: limit, taken: count) ? nil : .share
    }

    /// Returns true if a user with `own` of `taken` connections may have one more.
    private func isWithinShare(_ holder: QuotaHolder, own: Int, of limit: Int, taken: Int) -> Bool {
        switch holder {
        case .unasked: return true
        case .user(let uid) where privileged.contains(uid): return true
        case .user, .unknown:
            let left = limit - (taken - own)
            return own < left - left / 2
        }
    }

    /// Returns the number of reserved connections that listeners other than `listener` have not used.
    private func kept(of limit: Int, from listener: String) -> Int {
        let share = share(of: limit)
        guard share > 0 else { return 0 }
        return listeners.reduce(0) { sum, other in
            other == listener ? sum : sum + max(0, share - (heldAt[other] ?? 0))
        }
    }

    /// Returns the number of connections reserved for each listener.
    private func share(of limit: Int) -> Int { listeners.count > 1 ? limit / (2 * listeners.count) : 0 }

    private static func decrement<Key>(_ counts: inout [Key: Int], _ key: Key) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}
