// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeHandling

// The contract between the machine and its driver.
extension LeaseMachine {
    /// An input of the machine.
    package enum Event: Sendable, Equatable {
        /// A login needs a session later than `after`. Ends with `finish`.
        /// `after` is this node's generation, which is unusable by now, or 0. A renewal is of a session that is still usable; it is left to
        /// another node that renews already. `token` is new.
        case sessionRequested(after: UInt64, isRenewal: Bool, token: LeaseToken)
        /// No login needs the session any more. A running login continues.
        case requestCancelled
        /// The reply to the last `send`. `latches` is the count up to which this node knows the shared latches.
        case replyReceived(StoreReply?, latches: UInt64)
        /// The end of `readLatches`; false if they could not be read.
        case latchesRead(Bool)
        /// The session store's event about this session.
        case sessionChanged(generation: UInt64)
        /// The session store stopped answering.
        case storeDisconnected
        /// The session store answers again.
        case storeConnected
        /// `nextDeadline` was reached.
        case timerFired
        /// The login established a session: sealed, or `nil` if other nodes cannot use it.
        case loginSucceeded(session: [UInt8]?, lifetime: Duration)
        /// The login failed; the failure and its pause are shared (see `StoreRequest.fail`).
        case loginFailed([UInt8], pause: Duration, longestPause: Duration, latches: [SharedLatch])
        /// The login was cancelled; nothing is shared, and the next one may begin at once.
        case loginCancelled
        /// Shared failures do not apply here any more, because a latch was opened or a credential changed.
        case failuresForgotten
    }

    /// A task for the driver.
    package enum Action: Sendable, Equatable {
        /// Send the request to the session store; the reply comes as `replyReceived`.
        case send(StoreRequest)
        /// Read the shared latches; the end comes as `latchesRead`.
        case readLatches
        /// Begin the login; it ends with `loginSucceeded`, `loginFailed` or `loginCancelled`.
        ///
        /// `generation` is that of its lease; `nil` if the session store is unreachable and this node logs in alone.
        case beginLogin(generation: UInt64?)
        /// End the request for a session.
        case finish(Outcome)
        /// Take the later session of another node, which no login here waits for.
        case adoptSession(generation: UInt64, [UInt8])
        /// Drop the session of that generation, which another node has ended for all.
        case dropSession(generation: UInt64)
    }

    /// The end of a `sessionRequested`.
    package enum Outcome: Sendable, Equatable {
        /// Another node's session. If it is unusable here, it is requested again, after its generation.
        case session(generation: UInt64, [UInt8])
        /// Another node's failure, and the time until the next login.
        case failure([UInt8], for: Duration)
        /// This node's session, unless a later lease was granted meanwhile; `nil` without a lease.
        case established(generation: UInt64?)
        /// This node's login failed or was cancelled.
        case failed
        /// The request was cancelled, or another node renews the session.
        case leftToOther
    }
}

/// The time and the random number of one event.
struct LeaseInputs: Sendable {
    let now: Int64
    /// A number in 0...1.
    let random: Double

    /// Returns the time `duration` from now.
    func after(_ duration: Duration) -> Int64 { now &+ min(max(duration.milliseconds, 0), 1 << 50) }

    /// Returns a random share of `duration`, in milliseconds.
    func randomDelay(within duration: Duration) -> Int64 { randomShare(of: duration.milliseconds) }

    /// Returns a random share of a number, which is cut at 2^50.
    func randomShare(of number: Int64) -> Int64 { Int64(random * Double(min(number, 1 << 50))) }
}

/// Timing of the lease protocol between a node and the session store.
package struct LeaseTimes: Sendable, Equatable {
    /// Lifetime of a lease, and the longest wait for a node that died. It is extended at each third while a login runs.
    package var lease = Duration.seconds(6)
    /// Duration of a login after which its lease is not extended any more.
    package var longestLogin = Duration.seconds(600)
    /// Period over which nodes spread requests that are not urgent.
    package var spread = Duration.seconds(1)
    /// Period over which nodes spread their own logins while the session store is unreachable.
    package var alone = Duration.seconds(5)
    /// Pause after a missing reply. For reports it doubles with each try, up to `alone`.
    package var retry = Duration.milliseconds(250)
    /// Number of consecutive missing replies after which the session store counts as unreachable.
    package var tries = 2

    /// Defaults for logins of a second or two, and nodes in one network.
    package init() {}
}
