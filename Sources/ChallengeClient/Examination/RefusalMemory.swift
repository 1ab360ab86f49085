// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import Synchronization

/// A login's place at a route.
package struct RefusedPlace: Hashable, Sendable {
    let route: RouteKey
    /// With the scope: a session of another one, won earlier, says nothing of this.
    let key: SessionKey
}

/// A session's use that was refused at a route.
package struct RefusedUse: Sendable {
    let place: RefusedPlace
    let generation: UInt64
}

/// Refusals of sessions just won, shared by all workers of an upstream: for 30 s they go to the caller as they came, without another
/// login (CONTRIBUTING, rule 4).
///
/// Consulted only when a response looks like a challenge, so a lock does.
package final class RefusalMemory: Sendable {
    private struct Entry {
        var until: LoopInstant
        /// The first generation whose refusal needs no other login.
        var from: UInt64
        /// True if a session just won was refused, so that a request without any needs no login either.
        var isConfirmed: Bool
    }

    private struct State {
        var entries: [RefusedPlace: Entry] = [:]
        /// The same places in the order in which they were entered.
        var order: [RefusedPlace] = []
    }

    private static let span = Duration.seconds(30)
    private static let most = 1_000
    private let state = Mutex(State())
    private let isTouched = Atomic(false)

    /// Nothing refused yet.
    package init() {}

    /// True if nothing was ever refused, which is told without the lock.
    var isUnused: Bool { !isTouched.load(ordering: .relaxed) }

    /// Returns whether a challenge at `place`, to a request with the session of `generation` (0: without one), is an answer for the caller.
    func passes(_ place: RefusedPlace, generation: UInt64, now: LoopInstant) -> Bool {
        state.withLock { state in
            guard let entry = state.entries[place], now < entry.until else { return false }
            guard generation != 0 else { return entry.isConfirmed }
            guard generation >= entry.from else { return false }
            state.entries[place]?.isConfirmed = true
            return true
        }
    }

    /// A login begins because `use` was refused. If what it wins is refused there as well, that is no reason for a third.
    func noteLogin(after use: RefusedUse, now: LoopInstant) {
        state.withLock { state in
            if let entry = state.entries[use.place], now < entry.until { return }
            enter(Entry(until: Self.end(now), from: use.generation &+ 1, isConfirmed: false), at: use.place, &state)
        }
    }

    /// A session that was just won, or that serves elsewhere, was refused.
    func noteRefusal(_ use: RefusedUse, now: LoopInstant) {
        state.withLock { state in
            var from = use.generation
            if let entry = state.entries[use.place], now < entry.until { from = min(from, entry.from) }
            enter(Entry(until: Self.end(now), from: from, isConfirmed: true), at: use.place, &state)
        }
    }

    /// A session was accepted at `place`.
    func forget(_ place: RefusedPlace) {
        state.withLock { state in
            guard state.entries.removeValue(forKey: place) != nil else { return }
            state.order.removeAll { $0 == place }
        }
    }

    private static func end(_ now: LoopInstant) -> LoopInstant { now + span }

    private func enter(_ entry: Entry, at place: RefusedPlace, _ state: inout State) {
        isTouched.store(true, ordering: .relaxed)
        if state.entries.updateValue(entry, forKey: place) == nil { state.order.append(place) }
        guard state.order.count > Self.most else { return }
        // The oldest quarter at once, so that this costs little on average.
        for old in state.order.prefix(Self.most / 4) { state.entries[old] = nil }
        state.order.removeFirst(Self.most / 4)
    }
}
