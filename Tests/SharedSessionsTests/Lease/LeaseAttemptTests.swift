// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SharedSessions
import Testing

@Suite("A node that requests a shared session")
struct LeaseAttemptTests {
    @Test("a node logs in under its lease and publishes the session")
    func leads() {
        var node = LeaseNode()
        #expect(node.requestSession() == [LeaseNode.acquire()])
        #expect(node.answer(.granted(generation: 5, latches: 0)) == [.beginLogin(generation: 5)])
        let told = node.on(.loginSucceeded(session: [1], lifetime: .seconds(60)))
        #expect(told == [.finish(.established(generation: 5)), LeaseNode.publish(5, [1], lifetime: .seconds(60))])
        #expect(node.machine.generation == 5)
        #expect(node.machine.hasPendingReports)
        #expect(node.answer(.done(generation: 5)).isEmpty)
        #expect(!node.machine.hasPendingReports)
        #expect(node.machine.nextDeadline == nil)
    }

    @Test("a node adopts the store's session if it is later")
    func takes() {
        var node = LeaseNode()
        _ = node.requestSession(after: 3)
        #expect(node.answer(.session(generation: 4, [7])) == [.finish(.session(generation: 4, [7]))])
        #expect(node.machine.generation == 4)
    }

    @Test("a node that requests a session does not take one it knows to be refused", arguments: [2, 3] as [UInt64])
    func refuses(generation: UInt64) {
        var node = LeaseNode()
        _ = node.requestSession(after: 3)
        #expect(node.answer(.session(generation: generation, [7])).isEmpty)
        #expect(node.fire() == [LeaseNode.acquire(after: 3)])
    }

    @Test("a node never requests a generation that it knows to be refused")
    func keepsWhatIsRefused() {
        var node = LeaseNode()
        _ = node.requestSession(after: 9)
        _ = node.answer(.session(generation: 10, []))
        #expect(node.requestSession(after: 0) == [LeaseNode.acquire(after: 9)])
    }

    @Test("a node waits for the lease of another, then requests it with the same token after a random delay")
    func waits() {
        var node = LeaseNode()
        _ = node.requestSession()
        #expect(node.answer(.wait(.seconds(4))).isEmpty)
        #expect(node.machine.nextDeadline == 5_501)
        #expect(node.fire() == [LeaseNode.acquire()])
    }

    @Test("a waiting node requests the lease at once after an event")
    func retriesAfterEvent() {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.answer(.wait(.seconds(4)))
        #expect(node.on(.sessionChanged(generation: 1)) == [LeaseNode.acquire()])
    }

    @Test(
        "a reply that is older than an event is requested again at once",
        arguments: [.wait(.seconds(4)), .failed([9], for: .seconds(10))] as [StoreReply])
    func wasOvertaken(reply: StoreReply) {
        var node = LeaseNode()
        _ = node.requestSession()
        #expect(node.on(.sessionChanged(generation: 1)).isEmpty)
        #expect(node.answer(reply) == [LeaseNode.acquire()])
        #expect(node.answer(.session(generation: 1, [2])) == [.finish(.session(generation: 1, [2]))])
        #expect(node.machine.nextDeadline == nil)
    }

    @Test("a node waits if the request after an event gets the same reply")
    func waitsAfterNews() {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.on(.sessionChanged(generation: 1))
        _ = node.answer(.wait(.seconds(4)))
        #expect(node.answer(.wait(.seconds(4))).isEmpty)
        #expect(node.machine.nextDeadline == 5_501)
    }

    @Test("a node leaves a renewal to the one that renews, without further requests")
    func leaves() {
        var node = LeaseNode(generation: 3)
        _ = node.requestSession(after: 3, isRenewal: true)
        #expect(node.answer(.wait(.seconds(4))) == [.finish(.leftToOther)])
        #expect(node.requestSession(after: 3, isRenewal: true, token: "u") == [.finish(.leftToOther)])
        node.now += 4_000
        #expect(
            node.requestSession(after: 3, isRenewal: true, token: "v") == [LeaseNode.acquire(after: 3, token: "v")])
    }

    @Test("a node waits for a renewal that callers need by now")
    func hurries() {
        var node = LeaseNode(generation: 3)
        _ = node.requestSession(after: 3, isRenewal: true)
        #expect(node.requestSession(after: 3, token: "u").isEmpty)
        #expect(node.answer(.wait(.seconds(4))).isEmpty)
        #expect(node.fire() == [LeaseNode.acquire(after: 3)])
    }

    @Test("a node reads changed latches before it logs in")
    func readsLatches() {
        var node = LeaseNode()
        _ = node.requestSession()
        #expect(node.answer(.granted(generation: 1, latches: 8), latches: 7) == [.readLatches])
        #expect(node.on(.latchesRead(true)) == [.beginLogin(generation: 1)])
    }

    @Test("a node without the latches does not log in under its lease")
    func cannotReadLatches() {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.answer(.granted(generation: 1, latches: 8), latches: 7)
        #expect(node.on(.latchesRead(false)).isEmpty)
        #expect(node.fire() == [LeaseNode.acquire()])
    }

    @Test("a node does not log in under an expired lease")
    func isLate() {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.answer(.granted(generation: 1, latches: 8), latches: 7)
        node.now += 6_000
        #expect(node.on(.latchesRead(true)).isEmpty)
        #expect(node.fire() == [LeaseNode.acquire()])
    }

    @Test("a node shares the failure of another, without requests during its pause")
    func sharesFailure() {
        var node = LeaseNode()
        _ = node.requestSession()
        #expect(node.answer(.failed([9], for: .seconds(10))) == [.finish(.failure([9], for: .seconds(10)))])
        node.now += 4_000
        #expect(node.requestSession(token: "u") == [.finish(.failure([9], for: .seconds(6)))])
        node.now += 6_000
        #expect(node.requestSession(token: "v") == [LeaseNode.acquire(token: "v")])
    }

    @Test(
        "a node requests the lease again when the cause of a failure is gone",
        arguments: [.failuresForgotten, .sessionChanged(generation: 2)] as [LeaseMachine.Event])
    func forgets(event: LeaseMachine.Event) {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.answer(.failed([9], for: .seconds(10)))
        _ = node.on(event)
        #expect(node.requestSession(token: "u") == [LeaseNode.acquire(token: "u")])
    }

    @Test("a lease that is granted after the request was cancelled is released")
    func givesBack() {
        var node = LeaseNode()
        _ = node.requestSession()
        #expect(node.on(.requestCancelled) == [.finish(.leftToOther)])
        #expect(node.answer(.granted(generation: 5, latches: 0)) == [LeaseNode.release(5)])
    }

    @Test("a session that comes after the request was cancelled is adopted")
    func takesLate() {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.on(.requestCancelled)
        #expect(node.answer(.session(generation: 5, [1])) == [.adoptSession(generation: 5, [1])])
    }

    @Test("the lease of a cancelled request is released before the next is requested")
    func givesBackFirst() {
        var node = LeaseNode()
        _ = node.requestSession()
        _ = node.on(.requestCancelled)
        #expect(node.requestSession(token: "u").isEmpty)
        #expect(node.answer(.granted(generation: 5, latches: 0)) == [LeaseNode.release(5)])
        #expect(node.answer(.done(generation: 5)) == [LeaseNode.acquire(token: "u")])
    }

    @Test("a login goes on after its request was cancelled")
    func goesOn() {
        var node = LeaseNode.loggingIn()
        #expect(node.on(.requestCancelled).isEmpty)
        #expect(node.machine.isLoggingIn)
    }
}
