// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// Callers' places on all workers together: a `PlaceTable` behind a lock, which is taken when a caller comes or goes.
///
/// One table for all workers, since the kernel deals callers out to them as it likes: with a share for each, one would
/// refuse callers while another has room.
final class CallerPlaces: Sendable {
    private let table: Mutex<PlaceTable>

    /// Places that nobody has taken. `limit`: `nil`: as many as are wanted.
    init(limit: Int?) {
        // Root and our own user could stop the daemon.
        table = Mutex(PlaceTable(limit: limit, privileged: [0, geteuid()]))
    }

    /// The number of places; `Int.max` where nothing bounds them.
    var limit: Int { table.withLock { $0.limit ?? .max } }

    /// The number of places that are taken.
    var count: Int { table.withLock(\.count) }

    /// True if so much is taken that it matters whose a place is.
    var isScarce: Bool { table.withLock(\.isScarce) }

    /// The table as it is now.
    var current: PlaceTable { table.withLock { $0 } }

    /// Sets another limit; callers who have a place keep it.
    func setLimit(_ limit: Int?) { table.withLock { $0.limit = limit } }

    /// Keeps a part of the places for each of these listeners.
    func keep(for listeners: Set<String>) { table.withLock { $0.listeners = listeners } }

    /// Takes a place, or says why there is none.
    func enter(_ holder: PlaceHolder, at listener: String) -> PlaceTable.Denial? {
        table.withLock { $0.enter(holder, at: listener) }
    }

    /// Gives a place back that `enter` gave.
    func leave(_ holder: PlaceHolder, at listener: String) { table.withLock { $0.leave(holder, at: listener) } }
}

/// The place of one connection: at its listener, and among all callers.
struct CallerPlace {
    /// Why a caller got no place.
    struct Denial {
        /// For metrics and the reply.
        let reason: NoRoom
        /// The places that it did not get into.
        let places: CallerPlaces
    }

    /// The user that it counts for.
    let holder: PlaceHolder
    /// The name of its listener.
    let listener: String
    private let atListener: CallerPlaces
    /// `nil` for callers of the admin listeners: whoever wants to know how an overloaded daemon does must get in.
    private let everywhere: CallerPlaces?

    init(_ holder: PlaceHolder, at listener: ListenerPlan, of atListener: CallerPlaces, and everywhere: CallerPlaces) {
        self.holder = holder
        self.listener = listener.name
        self.atListener = atListener
        self.everywhere = listener.isLocal ? nil : everywhere
    }

    /// Takes it, or says why that cannot be.
    func enter() -> Denial? {
        if let denial = atListener.enter(holder, at: listener) {
            return Denial(reason: denial == .full ? .atListener : .user, places: atListener)
        }
        guard let everywhere, let denial = everywhere.enter(holder, at: listener) else { return nil }
        atListener.leave(holder, at: listener)
        return Denial(reason: denial == .full ? .everywhere : .user, places: everywhere)
    }

    /// Gives it back.
    func leave() {
        atListener.leave(holder, at: listener)
        everywhere?.leave(holder, at: listener)
    }

    /// Returns whether it is one of `places`.
    func isAmong(_ places: CallerPlaces) -> Bool { atListener === places || everywhere === places }
}
