// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The user that a caller's place counts for.
enum PlaceHolder: Hashable, Sendable {
    /// A user of this machine, by the uid.
    case user(UInt32)
    /// All callers together whose user the kernel does not tell: other machines, other network namespaces.
    case unknown
    /// Callers over TCP that came while there was room enough, so that nobody asked for their user.
    case unasked
}

/// Callers' places, shared out so that no user and no listener can take all of them.
///
/// A user may hold half of what all others leave: one alone gets half of the places, the next one half of the rest, and
/// so on. Half of the places is kept for the listeners, for each the same number.
struct PlaceTable {
    /// Why there is no place.
    enum Denial: Equatable {
        /// All places are taken, or kept for other listeners.
        case full
        /// The user holds as many as one user may.
        case share
    }

    /// The number of places; `nil`: as many as are wanted.
    var limit: Int?
    /// The listeners for which places are kept.
    var listeners: Set<String> = []
    /// The number of places that are taken.
    private(set) var count = 0
    /// The number of places that each user holds.
    private(set) var held: [PlaceHolder: Int] = [:]
    private var heldAt: [String: Int] = [:]
    /// Users that may take all: those who could end this process as well.
    private let privileged: Set<UInt32>

    init(limit: Int?, privileged: Set<UInt32> = []) {
        self.limit = limit
        self.privileged = privileged
    }

    /// True if so much is taken that it matters whose a place is.
    var isScarce: Bool { limit.map { count >= $0 / 4 } ?? false }

    /// Takes a place, or says why there is none.
    mutating func enter(_ holder: PlaceHolder, at listener: String) -> Denial? {
        if let denial = denial(holder, at: listener) { return denial }
        count += 1
        held[holder, default: 0] += 1
        heldAt[listener, default: 0] += 1
        return nil
    }

    /// Gives a place back that `enter` gave.
    mutating func leave(_ holder: PlaceHolder, at listener: String) {
        count -= 1
        Self.decrement(&held, holder)
        Self.decrement(&heldAt, listener)
    }

    /// Returns whether a caller gets a place once that of another is given back, which is its own user's or that of a user who holds more.
    func admits(
        _ holder: PlaceHolder, at listener: String, inPlaceOf other: PlaceHolder, at otherListener: String
    ) -> Bool {
        let own = held[holder] ?? 0
        guard other == holder || held[other] ?? 0 > own else { return false }
        guard let limit else { return true }
        var kept = kept(of: limit, from: listener)
        // It would only be kept for the listener that it was at.
        if otherListener != listener, listeners.contains(otherListener), heldAt[otherListener] ?? 0 <= share(of: limit)
        {
            kept += 1
        }
        guard count - 1 < limit - kept else { return false }
        return isWithinShare(holder, own: other == holder ? own - 1 : own, of: limit, taken: count - 1)
    }

    private func denial(_ holder: PlaceHolder, at listener: String) -> Denial? {
        guard let limit else { return nil }
        guard count < limit - kept(of: limit, from: listener) else { return .full }
        return isWithinShare(holder, own: held[holder] ?? 0, of: limit, taken: count) ? nil : .share
    }

    /// Returns whether a user that holds `own` of `taken` places may have one more.
    private func isWithinShare(_ holder: PlaceHolder, own: Int, of limit: Int, taken: Int) -> Bool {
        switch holder {
        case .unasked: return true
        case .user(let uid) where privileged.contains(uid): return true
        case .user, .unknown:
            let left = limit - (taken - own)
            return own < left - left / 2
        }
    }

    /// The places that other listeners than `listener` have not taken of those that are kept for them.
    private func kept(of limit: Int, from listener: String) -> Int {
        let share = share(of: limit)
        guard share > 0 else { return 0 }
        return listeners.reduce(0) { sum, other in
            other == listener ? sum : sum + max(0, share - (heldAt[other] ?? 0))
        }
    }

    /// The places that are kept for each listener.
    private func share(of limit: Int) -> Int { listeners.count > 1 ? limit / (2 * listeners.count) : 0 }

    private static func decrement<Key>(_ counts: inout [Key: Int], _ key: Key) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}
