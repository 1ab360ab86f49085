// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("A host that wants nothing of its fleet")
struct FleetNewsTests {
    @Test("takes a session that another host has renewed, a little later by chance")
    func takesRenewed() {
        var host = FleetHost(present: 3)
        #expect(host.on(.told(generation: 4)).isEmpty)
        #expect(host.machine.due == 1_500)
        #expect(host.fire() == [.ask(.fetch(after: 3))])
        #expect(host.answer(.session(generation: 4, [2])) == [.adopt(generation: 4, [2])])
        #expect(host.machine.present == 4)
        #expect(host.machine.due == nil)
    }

    @Test("keeps what it has where another host's renewal has failed")
    func keeps() {
        var host = FleetHost(present: 3)
        _ = host.on(.told(generation: 4))
        _ = host.fire()
        #expect(host.answer(.nothing).isEmpty)
        #expect(host.machine.present == 3)
    }

    @Test("asks only once for what it is told of by and by")
    func asksOnce() {
        var host = FleetHost(present: 3)
        _ = host.on(.told(generation: 4))
        _ = host.on(.told(generation: 4))
        _ = host.fire()
        #expect(host.answer(.session(generation: 4, [2])) == [.adopt(generation: 4, [2])])
        #expect(host.machine.due == nil)
    }

    @Test("does not look for what it was told of while it waited, once it has that")
    func hasIt() {
        var host = FleetHost()
        _ = host.want()
        _ = host.answer(.wait(.seconds(4)))
        #expect(host.on(.told(generation: 1)) == [FleetHost.acquire()])
        #expect(host.answer(.session(generation: 1, [2])) == [.finish(.session(generation: 1, [2]))])
        #expect(host.machine.due == nil)
    }

    @Test("does not look for what its own publication told it of")
    func ignoresEcho() {
        var host = FleetHost.loggingIn()
        _ = host.on(.won(session: [1], life: .seconds(60)))
        _ = host.answer(.done(generation: 5))
        #expect(host.on(.told(generation: 5)).isEmpty)
        #expect(host.machine.due == nil)
    }

    @Test("drops a session that another host has ended for all, once the engine says that it is gone")
    func drops() {
        var host = FleetHost(present: 3)
        _ = host.on(.told(generation: 3))
        #expect(host.fire() == [.ask(.fetch(after: 2))])
        #expect(host.answer(.nothing) == [.drop(generation: 3)])
        #expect(host.want() == [FleetHost.acquire(after: 3)])
    }

    @Test("drops nothing that the engine still has")
    func doesNotDrop() {
        var host = FleetHost(present: 3)
        _ = host.on(.told(generation: 3))
        _ = host.fire()
        #expect(host.answer(.session(generation: 3, [1])).isEmpty)
    }

    @Test("looks again when the engine is back, as what was told meanwhile is lost")
    func looksAgain() {
        var host = FleetHost(present: 3)
        _ = host.on(.away)
        #expect(host.on(.connected).isEmpty)
        #expect(host.fire() == [.ask(.fetch(after: 3))])
        #expect(host.answer(nil).isEmpty)
        #expect(host.fire() == [.ask(.fetch(after: 3))])
    }

    @Test("hands the session that a look has found to callers who came meanwhile")
    func servesCallers() {
        var host = FleetHost(present: 3)
        _ = host.on(.told(generation: 4))
        _ = host.fire()
        #expect(host.want(after: 3).isEmpty)
        #expect(host.answer(.session(generation: 4, [2])) == [.finish(.session(generation: 4, [2]))])
        #expect(host.machine.due == nil)
    }

    @Test("does not take a session that it knows to be refused")
    func refuses() {
        var host = FleetHost()
        _ = host.want(after: 7)
        _ = host.answer(.failed([], for: .seconds(1)))
        _ = host.on(.told(generation: 8))
        #expect(host.fire() == [.ask(.fetch(after: 7))])
        #expect(host.answer(.session(generation: 7, [2])).isEmpty)
    }
}
