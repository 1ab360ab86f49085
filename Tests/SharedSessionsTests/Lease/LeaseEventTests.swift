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
