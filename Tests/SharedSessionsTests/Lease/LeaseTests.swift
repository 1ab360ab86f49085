// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SharedSessions
import Testing

@Suite("A node that logs in under a lease")
struct LeaseTests {
    private let latch = SharedLatch(
        digest: "d", challenge: "bank", latch: Latch(reason: .rejected, closedAt: 1))

    @Test("a lease is extended at each third of its lifetime while the login runs")
    func extends() {
        var node = LeaseNode.loggingIn()
        #expect(node.machine.nextDeadline == 3_000)
        #expect(node.fire() == [LeaseNode.extend(5)])
        node.now += 100
        #expect(node.answer(.done(generation: 5)).isEmpty)
        #expect(node.machine.nextDeadline == 5_000)
    }

    @Test("an extension without a reply is requested again soon")
    func extendsAgain() {
        var node = LeaseNode.loggingIn()
        _ = node.fire()
        _ = node.answer(nil)
        #expect(node.machine.nextDeadline == 3_500)
        #expect(node.fire() == [LeaseNode.extend(5)])
    }

    @Test("a login goes on after the loss of its lease, and the fence decides about the session")
    func losesLease() {
        var node = LeaseNode.loggingIn()
        _ = node.fire()
        #expect(node.answer(.stale).isEmpty)
        #expect(node.machine.nextDeadline == nil)
        let told = node.on(.loginSucceeded(session: [1], lifetime: .seconds(60)))
        #expect(told == [.finish(.established(generation: 5)), LeaseNode.publish(5, [1], lifetime: .seconds(60))])
        #expect(node.answer(.stale).isEmpty)
        #expect(node.fire() == [.send(.fetch(after: 5))])
        #expect(node.answer(.session(generation: 6, [2])) == [.adoptSession(generation: 6, [2])])
    }

    @Test("a lease is not extended beyond the longest login")
    func endsExtending() {
        var node = LeaseNode.loggingIn()
        for _ in 0..<1_000 where node.machine.nextDeadline != nil {
            #expect(node.fire() == [LeaseNode.extend(5)])
            _ = node.answer(.done(generation: 5))
        }
        #expect(node.machine.nextDeadline == nil)
        #expect(node.now >= 600_000 && node.now < 610_000)
    }

    @Test("a failure is reported with its pause and latches until the store answers")
    func fails() {
        var node = LeaseNode.loggingIn()
        let told = node.on(.loginFailed([3], pause: .seconds(1), longestPause: .seconds(60), latches: [latch]))
        let request = StoreRequest.fail(
            token: LeaseToken("t"), generation: 5, failure: [3], pause: .seconds(1), longestPause: .seconds(60),
            latches: [latch])
        #expect(told == [.finish(.failed), .send(request)])
        #expect(node.answer(nil).isEmpty)
        #expect(node.fire() == [.send(request)])
        #expect(node.answer(.done(generation: 5)).isEmpty)
        #expect(!node.machine.hasPendingReports)
    }

    @Test("a lease is released after a cancelled or unshareable login", arguments: [true, false])
    func cancels(isUnshareable: Bool) {
        var node = LeaseNode.loggingIn()
        let told = node.on(isUnshareable ? .loginSucceeded(session: nil, lifetime: .seconds(60)) : .loginCancelled)
        let outcome = isUnshareable ? LeaseMachine.Outcome.established(generation: nil) : .failed
        #expect(told == [.finish(outcome), LeaseNode.release(5)])
    }

    @Test("a session is published until the store answers, with the remaining lifetime and growing pauses")
    func publishesAgain() {
        var node = LeaseNode.loggingIn()
        _ = node.on(.loginSucceeded(session: [1], lifetime: .seconds(60)))
        var pauses: [Int64] = []
        for _ in 0..<8 {
            let before = node.now
            _ = node.answer(nil)
            let told = node.fire()
            pauses.append(node.now - before)
            #expect(told == [LeaseNode.publish(5, [1], lifetime: .milliseconds(61_000 - node.now))])
        }
        #expect(pauses == pauses.sorted())
        #expect(pauses.first.map { $0 < 250 } == true)
        #expect(pauses.last.map { $0 > 2_000 && $0 <= 5_000 } == true)
    }

    @Test("a session that has ended is not published")
    func doesNotPublish() {
        var node = LeaseNode.loggingIn()
        _ = node.on(.loginSucceeded(session: [1], lifetime: .seconds(60)))
        node.now += 60_000
        #expect(node.answer(nil).isEmpty)
        #expect(!node.machine.hasPendingReports)
    }

    @Test("a session that was refused is not published, and its lease is released")
    func withdraws() {
        var node = LeaseNode.loggingIn()
        _ = node.on(.loginSucceeded(session: [1], lifetime: .seconds(60)))
        #expect(node.requestSession(after: 5, token: "u").isEmpty)
        #expect(node.answer(nil) == [LeaseNode.release(5)])
        #expect(node.answer(.done(generation: 5)) == [LeaseNode.acquire(after: 5, token: "u")])
    }

    @Test("a token is never used again after its login began")
    func tokensAreSpent() {
        var node = LeaseNode.loggingIn()
        for event in [
            .storeConnected, .sessionChanged(generation: 6), .storeDisconnected, .storeConnected, .timerFired,
        ] as [LeaseMachine.Event] {
            for action in node.on(event) {
                if case .send(.acquire) = action { Issue.record("asks again after \(event)") }
            }
            _ = node.answer(nil)
        }
        #expect(node.machine.isLoggingIn)
    }
}

/// A machine with a clock that the test sets. Each method is one event, and returns the machine's actions.
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

    /// Requests a session, with the lease token `token`.
    mutating func requestSession(after: UInt64 = 0, isRenewal: Bool = false, token: String = "t") -> [Action] {
        on(.sessionRequested(after: after, isRenewal: isRenewal, token: LeaseToken(token)))
    }

    /// Fires the timer when due; returns no actions if it is not set.
    mutating func fire() -> [Action] {
        guard let due = machine.nextDeadline else { return [] }
        now = max(now, due)
        return on(.timerFired)
    }

    /// Returns a node that logs in under a lease of that generation.
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
