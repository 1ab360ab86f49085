// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// A request of a node to the *session store*, about one session.
///
/// The session store (a Valkey or Redis that all nodes share) carries out each request atomically. A *lease* is the right to log in
/// for a while, which one node has at a time. Leases are numbered; the number, the *fence*, is the generation of the session that is
/// established under it, so the holder of an expired lease cannot replace the session of a later one. All times are the session
/// store's; no node's clock is compared with another's.
package enum StoreRequest: Sendable, Equatable {
    /// Requests the lease. Not granted if a session later than `after` exists, or during the pause after a failed login.
    ///
    /// Repeated with the same token, it grants the same lease again, as a reply may have been lost. `after` is the latest generation
    /// that this node knows to be unusable, or 0: the next is above it even if the session store has lost its count.
    case acquire(after: UInt64, token: LeaseToken, lifetime: Duration)
    /// Extends the lease of that token: `done`, or `stale` if a later one was granted.
    case extend(token: LeaseToken, generation: UInt64, lifetime: Duration)
    /// Publishes the sealed session and ends the lease: `done`. No effect after a later lease: `stale`.
    case publish(token: LeaseToken, generation: UInt64, session: [UInt8], lifetime: Duration)
    /// Reports a failed login and ends the lease: `done` or `stale`.
    ///
    /// Lease requests are answered with `failure` during a pause: `pause`, doubled with each consecutive failure, at most
    /// `longestPause`. `latches` are those that the login closed.
    case fail(
        token: LeaseToken, generation: UInt64, failure: [UInt8], pause: Duration, longestPause: Duration,
        latches: [SharedLatch])
    /// Offers a session established without a lease: `done`, or the `session` later than `after`.
    case offer(after: UInt64, session: [UInt8], lifetime: Duration)
    /// Fetches a `session` later than `after`, or `nothing`.
    case fetch(after: UInt64)
    /// Ends the session up to that generation for all nodes: `done`, or `nothing`.
    case drop(generation: UInt64)
}

/// A reply of the session store.
package enum StoreReply: Sendable, Equatable {
    /// The lease is this node's, and its session will be of `generation`.
    ///
    /// `latches` counts the changes of the shared latches: a node that knows an earlier count reads them before it sends a credential.
    case granted(generation: UInt64, latches: UInt64)
    /// Another node has the lease, for at most that long.
    case wait(Duration)
    /// A sealed session that is later than the requested generation.
    case session(generation: UInt64, [UInt8])
    /// The failure of the last login, and the time until the next one may begin.
    case failed([UInt8], for: Duration)
    /// The request was carried out; for an `offer` under that generation.
    case done(generation: UInt64)
    /// A later lease was granted, or this one has ended.
    case stale
    /// No such session.
    case nothing
}

/// An event of the session store. It may be lost or late: it only shows that a query is worthwhile.
package enum StoreEvent: Sendable, Equatable {
    /// The store answers again; events of the meantime are lost.
    case connected
    /// The store stopped answering, for that reason.
    case disconnected(reason: String)
    /// Another node has published, failed to establish, or dropped the session of that name.
    case sessionChanged(name: String, generation: UInt64)
    /// The shared latches or used codes have changed; `count` counts the changes.
    case attemptsChanged(count: UInt64)
}

/// Identifies one request for a session: 16 random bytes in hexadecimal.
package struct LeaseToken: Sendable, Hashable {
    /// The digits.
    package let text: String

    /// Makes a token from its digits.
    package init(_ text: String) { self.text = text }
}
