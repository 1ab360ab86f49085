// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What a host asks of the *session engine* (a Valkey or Redis that the hosts of a fleet share) about one session. The engine
/// carries each out as a whole: nobody sees a part of it.
///
/// A *lease* is the right to log in for a while, which one host has at a time. The engine counts the leases of a session, and the
/// number, the *fence*, is the generation of the session that is won under it: whoever held a lease that has run out cannot put his
/// session over that of a later one. Times are by the engine's clock alone; no host's clock is compared with another's.
package enum EngineRequest: Sendable, Equatable {
    /// The lease, unless a session later than `after` is there, or a failed login is being waited out. Asked again with the same
    /// token while it lasts, the same lease is granted once more (an answer may have been lost). `after` is the latest generation that
    /// this host knows to be no use, or 0: the next is above it also where the engine has lost its count.
    case acquire(after: UInt64, token: LeaseToken, life: Duration)
    /// More time for the lease of that token; `done`, or `stale` where it is no longer the last one.
    case extend(token: LeaseToken, generation: UInt64, life: Duration)
    /// The session that was won under a lease, sealed, and how long it lives; ends the lease. `done`, or `stale` where a later
    /// lease was granted, which changes nothing.
    case publish(token: LeaseToken, generation: UInt64, session: [UInt8], life: Duration)
    /// The login under a lease has failed; ends the lease. All hosts are answered with `failure` for a pause, which is `pause` doubled
    /// with each failure in a row, and at most `longest`. `latches` are those that it closed. `done`, or `stale`.
    case fail(
        token: LeaseToken, generation: UInt64, failure: [UInt8], pause: Duration, longest: Duration,
        latches: [SharedLatch])
    /// A session that was won while the engine was away, for where none is there that is later than `after`; then `done` with its
    /// generation, else `session`.
    case offer(after: UInt64, session: [UInt8], life: Duration)
    /// The session, where one later than `after` is there: `session`, else `nothing`.
    case fetch(after: UInt64)
    /// Ends the session for all, where it is of that generation or an earlier one; `done`, or `nothing`.
    case drop(generation: UInt64)
}

/// What the engine answers.
package enum EngineReply: Sendable, Equatable {
    /// The lease is this host's; the session that it wins will be of `generation`. `latches` counts the changes of the shared
    /// latches: whoever knows an earlier count reads them before a credential is sent.
    case granted(generation: UInt64, latches: UInt64)
    /// Another host has the lease, for so long at most.
    case wait(Duration)
    /// A session that is later than what was asked for, sealed.
    case session(generation: UInt64, [UInt8])
    /// The last login failed so, and is not to be tried for so long.
    case failed([UInt8], for: Duration)
    /// It was done; for an `offer` under that generation, else under the one that was named.
    case done(generation: UInt64)
    /// A later lease was granted, or this one has run out.
    case stale
    /// There is nothing of that kind.
    case nothing
}

/// Tells one attempt to win a session from all others, on all hosts: 16 random bytes in hexadecimal.
package struct LeaseToken: Sendable, Hashable {
    /// The digits.
    package let text: String

    /// A token of those digits.
    package init(_ text: String) { self.text = text }
}

/// A latch as all hosts of a fleet know it: by a digest under the fleet's key, never by the value.
package struct SharedLatch: Sendable, Equatable {
    /// Names the value and what it was rejected for: a keyed digest, in hexadecimal.
    package var digest: String
    /// The challenge, so that an operator's `unlatch` finds it.
    package var challenge: String
    /// Whether the account was locked, or the value rejected; until when.
    package var latch: Latch

    /// A latch.
    package init(digest: String, challenge: String, latch: Latch) {
        self.digest = digest
        self.challenge = challenge
        self.latch = latch
    }
}
