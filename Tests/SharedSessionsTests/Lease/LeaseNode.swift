// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SharedSessions

/// A machine with a clock that the test sets, for tests that read as what happens and what is done.
struct LeaseNode {
    typealias Event = LeaseMachine.Event
    typealias Action = LeaseMachine.Action

    var machine: LeaseMachine
    var now: Int64 = 1_000
    var random = 0.5

    init(isStoreReachable: Bool = true, generation: UInt64 = 0) {
        machine = LeaseMachine(isStoreReachable: isStoreReachable, generation: generation)
    }

    mutating func on(_ event: Event) -> [Action] { machine.handle(event, now: now, random: random) }

    mutating func answer(_ reply: StoreReply?, latches: UInt64 = 0) -> [Action] {
        on(.replyReceived(reply, latches: latches))
    }

    /// A session is wanted, with the token `t`.
    mutating func requestSession(after: UInt64 = 0, isRenewal: Bool = false, token: String = "t") -> [Action] {
        on(.sessionRequested(after: after, isRenewal: isRenewal, token: LeaseToken(token)))
    }

    /// The timer fires when it is due; empty where it is not set.
    mutating func fire() -> [Action] {
        guard let due = machine.nextDeadline else { return [] }
        now = max(now, due)
        return on(.timerFired)
    }

    /// A login runs under a lease of that generation.
    static func loggingIn(_ generation: UInt64 = 5) -> LeaseNode {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.answer(.granted(generation: generation, latches: 0))
        return node
    }

    static let lifetime = LeaseTimes().lease

    static func acquire(after: UInt64 = 0, token: String = "t") -> Action {
        .send(.acquire(after: after, token: LeaseToken(token), lifetime: lifetime))
    }

    static func extend(_ generation: UInt64, token: String = "t") -> Action {
        .send(.extend(token: LeaseToken(token), generation: generation, lifetime: lifetime))
    }

    static func publish(_ generation: UInt64, _ session: [UInt8], lifetime: Duration, token: String = "t") -> Action {
        .send(.publish(token: LeaseToken(token), generation: generation, session: session, lifetime: lifetime))
    }

    static func release(_ generation: UInt64, token: String = "t") -> Action {
        .send(
            .fail(
                token: LeaseToken(token), generation: generation, failure: [], pause: .zero, longestPause: .zero,
                latches: []))
    }
}
