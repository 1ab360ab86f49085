// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SharedSessions
import Testing

@Suite("A node without a request")
struct LeaseEventTests {
    @Test("an idle node adopts a renewed session after a random delay")
    func takesRenewed() {
        var node = LeaseNode(generation: 3)
        #expect(node.on(.sessionChanged(generation: 4)).isEmpty)
        #expect(node.machine.nextDeadline == 1_500)
        #expect(node.fire() == [.send(.fetch(after: 3))])
        #expect(node.answer(.session(generation: 4, [2])) == [.adoptSession(generation: 4, [2])])
        #expect(node.machine.generation == 4)
        #expect(node.machine.nextDeadline == nil)
    }

    @Test("an idle node keeps its session if another node's renewal failed")
    func keeps() {
        var node = LeaseNode(generation: 3)
        _ = node.on(.sessionChanged(generation: 4))
        _ = node.fire()
        #expect(node.answer(.nothing).isEmpty)
        #expect(node.machine.generation == 3)
    }

    @Test("an idle node fetches a session once after several events")
    func asksOnce() {
        var node = LeaseNode(generation: 3)
        _ = node.on(.sessionChanged(generation: 4))
        _ = node.on(.sessionChanged(generation: 4))
        _ = node.fire()
        #expect(node.answer(.session(generation: 4, [2])) == [.adoptSession(generation: 4, [2])])
        #expect(node.machine.nextDeadline == nil)
    }

    @Test(
        "an idle node fetches again after an event that came before an older reply", arguments: [nil, 2] as [UInt64?])
    func fetchesAgain(older: UInt64?) {
        var node = LeaseNode(generation: 1)
        _ = node.on(.storeConnected)
        #expect(node.fire() == [.send(.fetch(after: 1))])
        #expect(node.on(.sessionChanged(generation: 3)).isEmpty)
        _ = node.answer(older.map { .session(generation: $0, [2]) } ?? .nothing)
        #expect(node.fire() == [.send(.fetch(after: older ?? 1))])
        #expect(node.answer(.session(generation: 3, [3])) == [.adoptSession(generation: 3, [3])])
        #expect(node.machine.nextDeadline == nil)
    }

    @Test("a node does not fetch a session that it got while it waited")
    func hasIt() {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.answer(.wait(.seconds(4)))
        #expect(node.on(.sessionChanged(generation: 1)) == [LeaseNode.acquire()])
        #expect(node.answer(.session(generation: 1, [2])) == [.finish(.session(generation: 1, [2]))])
        #expect(node.machine.nextDeadline == nil)
    }

    @Test("a node does not fetch the session that it published")
    func ignoresEcho() {
        var node = LeaseNode.loggingIn()
        _ = node.on(.loginSucceeded(session: [1], lifetime: .seconds(60)))
        _ = node.answer(.done(generation: 5))
        #expect(node.on(.sessionChanged(generation: 5)).isEmpty)
        #expect(node.machine.nextDeadline == nil)
    }

    @Test("a node drops a session that another ended, once the store has none")
    func drops() {
        var node = LeaseNode(generation: 3)
        _ = node.on(.sessionChanged(generation: 3))
        #expect(node.fire() == [.send(.fetch(after: 2))])
        #expect(node.answer(.nothing) == [.dropSession(generation: 3)])
        #expect(node.requestSession() == [LeaseNode.acquire(after: 3)])
    }

    @Test("a node drops no session that the store still has")
    func doesNotDrop() {
        var node = LeaseNode(generation: 3)
        _ = node.on(.sessionChanged(generation: 3))
        _ = node.fire()
        #expect(node.answer(.session(generation: 3, [1])).isEmpty)
    }

    @Test("a node fetches its session after a reconnection, as events were lost")
    func looksAgain() {
        var node = LeaseNode(generation: 3)
        _ = node.on(.storeDisconnected)
        #expect(node.on(.storeConnected).isEmpty)
        #expect(node.fire() == [.send(.fetch(after: 3))])
        #expect(node.answer(nil).isEmpty)
        #expect(node.fire() == [.send(.fetch(after: 3))])
    }

    @Test("a fetched session finishes a request that came meanwhile")
    func servesCallers() {
        var node = LeaseNode(generation: 3)
        _ = node.on(.sessionChanged(generation: 4))
        _ = node.fire()
        #expect(node.requestSession(after: 3).isEmpty)
        #expect(node.answer(.session(generation: 4, [2])) == [.finish(.session(generation: 4, [2]))])
        #expect(node.machine.nextDeadline == nil)
    }

    @Test("an idle node does not take a session it knows to be refused")
    func refuses() {
        var node = LeaseNode()
        _ = node.requestSession(after: 7)
        _ = node.answer(.failed([], for: .seconds(1)))
        _ = node.on(.sessionChanged(generation: 8))
        #expect(node.fire() == [.send(.fetch(after: 7))])
        #expect(node.answer(.session(generation: 7, [2])).isEmpty)
    }
}

@Suite("A node whose session store does not answer")
struct LeaseOutageTests {
    /// Returns a node that has logged in without the session store.
    private func alone() -> LeaseNode {
        var node = LeaseNode(isStoreReachable: false)
        _ = node.requestSession(after: 3)
        _ = node.fire()
        _ = node.answer(nil)
        #expect(
            node.on(.loginSucceeded(session: [1], lifetime: .seconds(60))) == [.finish(.established(generation: nil))])
        return node
    }

    @Test("a lost reply is requested again with the same token")
    func asksAgain() {
        var node = LeaseNode()
        _ = node.requestSession()
        #expect(node.answer(nil).isEmpty)
        #expect(node.machine.nextDeadline == 1_251)
        #expect(node.fire() == [LeaseNode.acquire()])
        #expect(node.answer(.granted(generation: 1, latches: 0)) == [.beginLogin(generation: 1)])
    }

    @Test("a node logs in alone after a random delay and a final request", arguments: [0, 0.25, 0.999])
    func logsInAlone(random: Double) {
        var node = LeaseNode(isStoreReachable: false)
        node.random = random
        #expect(node.requestSession().isEmpty)
        #expect(node.machine.nextDeadline == 1_000 + Int64(5_000 * random))
        #expect(node.fire() == [LeaseNode.acquire()])
        #expect(node.answer(nil) == [.beginLogin(generation: nil)])
    }

    @Test("a node does not wait for another's lease while the store is unreachable")
    func stopsWaiting() {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.answer(.wait(.seconds(6)))
        #expect(node.on(.storeDisconnected).isEmpty)
        #expect(node.machine.nextDeadline == 3_500)
        #expect(node.fire() == [LeaseNode.acquire()])
    }

    @Test("a node requests the lease at once after a reconnection and does not log in alone")
    func comesBack() {
        var node = LeaseNode(isStoreReachable: false)
        _ = node.requestSession()
        #expect(node.on(.storeConnected) == [LeaseNode.acquire()])
        #expect(node.answer(.wait(.seconds(6))).isEmpty)
    }

    @Test("a store counts as unreachable after two missing replies")
    func countsAsAway() {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.answer(nil)
        _ = node.fire()
        #expect(node.answer(nil).isEmpty)
        #expect(node.fire() == [LeaseNode.acquire()])
        #expect(node.answer(nil) == [.beginLogin(generation: nil)])
    }

    @Test("a session established alone is offered after a reconnection and a random delay")
    func offers() {
        var node = alone()
        #expect(node.on(.storeConnected).isEmpty)
        #expect(node.machine.nextDeadline == node.now + 500)
        let left = 60_000 - 500
        #expect(node.fire() == [.send(.offer(after: 3, session: [1], lifetime: .milliseconds(left)))])
        #expect(node.answer(.done(generation: 8)).isEmpty)
        #expect(node.machine.generation == 8)
    }

    @Test("a node adopts the session of another that offered first")
    func takesOther() {
        var node = alone()
        _ = node.on(.storeConnected)
        _ = node.fire()
        #expect(node.answer(.session(generation: 8, [2])) == [.adoptSession(generation: 8, [2])])
        #expect(!node.machine.hasPendingReports)
    }

    @Test("a node recognises its own session after a lost reply to its offer")
    func knowsOwn() {
        var node = alone()
        _ = node.on(.storeConnected)
        _ = node.fire()
        _ = node.answer(nil)
        _ = node.fire()
        #expect(node.answer(.session(generation: 8, [1])).isEmpty)
        #expect(node.machine.generation == 8)
    }

    @Test("a refused session is not offered")
    func withdrawsOffer() {
        var node = alone()
        _ = node.requestSession(after: 3, token: "u")
        #expect(!node.machine.hasPendingReports)
    }

    @Test("a refused session does not come back after a lost reply to its offer")
    func knowsRefused() {
        var node = alone()
        _ = node.on(.storeConnected)
        _ = node.fire()
        _ = node.requestSession(after: 3, token: "u")
        #expect(node.answer(nil) == [LeaseNode.acquire(after: 3, token: "u")])
        #expect(node.answer(.session(generation: 8, [1])) == [LeaseNode.acquire(after: 8, token: "u")])
    }

    @Test("a failure is reported after a reconnection")
    func tellsLater() {
        var node = LeaseNode.loggingIn()
        _ = node.on(.storeDisconnected)
        #expect(
            node.on(.loginFailed([3], pause: .seconds(1), longestPause: .seconds(60), latches: [])) == [
                .finish(.failed)
            ])
        #expect(node.machine.nextDeadline == nil)
        guard case .send(.fail)? = node.on(.storeConnected).first else {
            return #expect(Bool(false), "nothing is told")
        }
    }

    @Test("a lease is extended at once after a reconnection")
    func extendsAtOnce() {
        var node = LeaseNode.loggingIn()
        _ = node.on(.storeDisconnected)
        #expect(node.machine.nextDeadline == nil)
        #expect(node.on(.storeConnected) == [LeaseNode.extend(5)])
    }
}
