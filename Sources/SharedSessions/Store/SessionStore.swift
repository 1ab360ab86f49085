// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// Names of sessions at the session store, `ACCOUNT.SCOPE`, equal on all nodes that configure the login alike.
package enum StoreName {
    /// Returns the name of the session of an account with one scope. Neither part has a full stop.
    package static func of(account: String, scope: String) -> String { "\(account).\(scope)" }

    /// Returns the account of `name`: the part before the first full stop.
    ///
    /// Sessions with the same account are established with one credential at one server, so one of them is leased at a
    /// time.
    package static func account(of name: String) -> String { String(name.prefix { $0 != "." }) }
}

/// The port to the session store. All calls and callbacks are on one loop's thread; nothing blocks.
///
/// The session store knows a session by its `StoreName`.
package protocol SessionStore: AnyObject {
    /// True if the session store answers, as far as is known.
    var isReachable: Bool { get }
    /// Receives events; set before `connect`.
    var onEvent: ((StoreEvent) -> Void)? { get set }

    /// Connects, and reconnects after each loss of the connection, after a pause that grows randomly.
    func connect()
    /// Closes the connection; pending requests are answered with `nil`.
    func close()
    /// Sends `request` for the session of `name`.
    ///
    /// `completion` gets `nil` if no reply came in time or the store is unreachable; the request may have been carried out.
    func send(_ request: StoreRequest, for name: String, _ completion: @escaping (StoreReply?) -> Void)
    /// Subscribes to events about a session. Earlier events are lost; fetch the session if it matters.
    func subscribe(to name: String)
    /// Reads the shared latches and used one-time codes.
    func readAttempts(_ completion: @escaping (SharedAttempts?) -> Void)
    /// Closes latches that no failed login has reported. `completion` gets true once they are closed.
    func closeLatches(_ latches: [SharedLatch], _ completion: @escaping (Bool) -> Void)
    /// Opens all latches of a challenge; `completion` gets their number.
    func openLatches(of challenge: String, _ completion: @escaping (Int?) -> Void)
    /// Marks steps of one-time codes as used; `completion` gets true once they are.
    func markUsed(_ codes: UsedCodes, _ completion: @escaping (Bool) -> Void)
}
