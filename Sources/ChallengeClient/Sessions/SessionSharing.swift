// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The port through which sessions are shared with other nodes.
///
/// `LoginRunner` asks it in one place, before a login; a request that uses a held session never does.
package protocol SessionSharing: Sendable {
    /// Reachability of the session store, and counts of shared logins.
    var statistics: SharingStatistics { get }

    /// Establishes the session of `key`, by `login` or from another node's login.
    ///
    /// The configuration of `generation` names the session, so that none of another configuration is used. The end of `login` is
    /// reported to the other nodes. Returns `nil` if another node renews the session; the held one stays in use.
    func logIn(
        _ key: SessionKey, in generation: UInt64, isRenewal: Bool, by login: () async -> Result<Session, LoginFailure>
    ) async -> Result<Session, LoginFailure>?

    /// Returns true if the configuration of `generation` shares the session of `key`. No node may end it for itself.
    func isShared(_ key: SessionKey, in generation: UInt64) -> Bool

    /// Ends the sessions of `keys` on all nodes.
    func dropSessions(of keys: [SessionKey])

    /// Opens the latches of a challenge on all other nodes.
    func unlatch(_ challenge: String)

    /// Forgets reported failures. Called when a credential has changed or a latch was opened.
    func forgetFailures()
}

/// Statistics of session sharing on this node.
package struct SharingStatistics: Sendable, Equatable {
    /// True if the session store answers.
    package var isStoreReachable = false
    /// Time of the last change of that, in milliseconds since 1970.
    package var since: Int64 = 0
    /// Reason for an unreachable session store.
    package var reason = "not connected yet"
    /// Requests to the session store.
    package var requests: UInt64 = 0
    /// Requests that were not answered in time.
    package var unanswered: UInt64 = 0
    /// Leases granted to this node.
    package var leases: UInt64 = 0
    /// Sessions of other nodes that were taken up here.
    package var taken: UInt64 = 0
    /// Sessions of other nodes that are unusable here.
    package var unusable: UInt64 = 0
    /// Sessions that this node has published.
    package var published: UInt64 = 0
    /// Logins without a lease, as the session store was unreachable.
    package var alone: UInt64 = 0
    /// Failures of other nodes' logins that were shared here.
    package var failures: UInt64 = 0

    /// Statistics of a node that has not connected.
    package init() {}
}
