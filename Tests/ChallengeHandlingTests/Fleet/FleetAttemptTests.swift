// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("A host that wants a session of its fleet")
struct FleetAttemptTests {
    @Test("logs in under the lease that it is granted, and publishes what it wins")
    func leads() {
        var host = FleetHost()
        #expect(host.want() == [FleetHost.acquire()])
        #expect(host.answer(.granted(generation: 5, latches: 0)) == [.begin(generation: 5)])
        let told = host.on(.won(session: [1], life: .seconds(60)))
        #expect(told == [.finish(.won(generation: 5)), FleetHost.publish(5, [1], life: .seconds(60))])
        #expect(host.machine.present == 5)
        #expect(host.machine.hasUntold)
        #expect(host.answer(.done(generation: 5)).isEmpty)
        #expect(!host.machine.hasUntold)
        #expect(host.machine.due == nil)
    }

    @Test("takes the session that is there, if it is a later one")
    func takes() {
        var host = FleetHost()
        _ = host.want(after: 3)
        #expect(host.answer(.session(generation: 4, [7])) == [.finish(.session(generation: 4, [7]))])
        #expect(host.machine.present == 4)
    }

    @Test("does not take a session that it knows to be refused", arguments: [2, 3] as [UInt64])
    func refuses(generation: UInt64) {
        var host = FleetHost()
        _ = host.want(after: 3)
        #expect(host.answer(.session(generation: generation, [7])).isEmpty)
        #expect(host.fire() == [FleetHost.acquire(after: 3)])
    }

    @Test("never asks for less than it knows to be refused")
    func keepsWhatIsRefused() {
        var host = FleetHost()
        _ = host.want(after: 9)
        _ = host.answer(.session(generation: 10, []))
        #expect(host.want(after: 0) == [FleetHost.acquire(after: 9)])
    }

    @Test("waits while another host logs in, and asks again with the same token, a little after its lease by chance")
    func waits() {
        var host = FleetHost()
        _ = host.want()
        #expect(host.answer(.wait(.seconds(4))).isEmpty)
        #expect(host.machine.due == 5_501)
        #expect(host.fire() == [FleetHost.acquire()])
    }

    @Test("asks again at once when news come")
    func hears() {
        var host = FleetHost()
        _ = host.want()
        _ = host.answer(.wait(.seconds(4)))
        #expect(host.on(.told(generation: 1)) == [FleetHost.acquire()])
    }

    @Test(
        "asks again at once when news came before an answer that is older than they are",
        arguments: [.wait(.seconds(4)), .failed([9], for: .seconds(10))] as [EngineReply])
    func wasOvertaken(reply: EngineReply) {
        var host = FleetHost()
        _ = host.want()
        #expect(host.on(.told(generation: 1)).isEmpty)
        #expect(host.answer(reply) == [FleetHost.acquire()])
        #expect(host.answer(.session(generation: 1, [2])) == [.finish(.session(generation: 1, [2]))])
        #expect(host.machine.due == nil)
    }

    @Test("waits where what was asked after the news is answered so, too")
    func waitsAfterNews() {
        var host = FleetHost()
        _ = host.want()
        _ = host.on(.told(generation: 1))
        _ = host.answer(.wait(.seconds(4)))
        #expect(host.answer(.wait(.seconds(4))).isEmpty)
        #expect(host.machine.due == 5_501)
    }

    @Test("leaves a renewal to the host that is at it, and asks no more meanwhile")
    func leaves() {
        var host = FleetHost(present: 3)
        _ = host.want(after: 3, isRenewal: true)
        #expect(host.answer(.wait(.seconds(4))) == [.finish(.left)])
        #expect(host.want(after: 3, isRenewal: true, token: "u") == [.finish(.left)])
        host.now += 4_000
        #expect(host.want(after: 3, isRenewal: true, token: "v") == [FleetHost.acquire(after: 3, token: "v")])
    }

    @Test("waits for a renewal that callers come to need")
    func hurries() {
        var host = FleetHost(present: 3)
        _ = host.want(after: 3, isRenewal: true)
        #expect(host.want(after: 3, token: "u").isEmpty)
        #expect(host.answer(.wait(.seconds(4))).isEmpty)
        #expect(host.fire() == [FleetHost.acquire(after: 3)])
    }

    @Test("reads the latches before it logs in, where they have changed")
    func readsLatches() {
        var host = FleetHost()
        _ = host.want()
        #expect(host.answer(.granted(generation: 1, latches: 8), latches: 7) == [.readLatches])
        #expect(host.on(.latchesRead(true)) == [.begin(generation: 1)])
    }

    @Test("does not log in under a lease without the latches")
    func cannotReadLatches() {
        var host = FleetHost()
        _ = host.want()
        _ = host.answer(.granted(generation: 1, latches: 8), latches: 7)
        #expect(host.on(.latchesRead(false)).isEmpty)
        #expect(host.fire() == [FleetHost.acquire()])
    }

    @Test("does not log in under a lease that has run out by then")
    func isLate() {
        var host = FleetHost()
        _ = host.want()
        _ = host.answer(.granted(generation: 1, latches: 8), latches: 7)
        host.now += 6_000
        #expect(host.on(.latchesRead(true)).isEmpty)
        #expect(host.fire() == [FleetHost.acquire()])
    }

    @Test("shares the failure of another host, and asks no more while it is to be waited out")
    func sharesFailure() {
        var host = FleetHost()
        _ = host.want()
        #expect(host.answer(.failed([9], for: .seconds(10))) == [.finish(.failure([9], for: .seconds(10)))])
        host.now += 4_000
        #expect(host.want(token: "u") == [.finish(.failure([9], for: .seconds(6)))])
        host.now += 6_000
        #expect(host.want(token: "v") == [FleetHost.acquire(token: "v")])
    }

    @Test(
        "asks again when the cause of a failure is gone",
        arguments: [.forget, .told(generation: 2)] as [FleetMachine.Event])
    func forgets(event: FleetMachine.Event) {
        var host = FleetHost()
        _ = host.want()
        _ = host.answer(.failed([9], for: .seconds(10)))
        _ = host.on(event)
        #expect(host.want(token: "u") == [FleetHost.acquire(token: "u")])
    }

    @Test("gives back a lease that is granted when nobody wants it any more")
    func givesBack() {
        var host = FleetHost()
        _ = host.want()
        #expect(host.on(.giveUp) == [.finish(.left)])
        #expect(host.answer(.granted(generation: 5, latches: 0)) == [FleetHost.release(5)])
    }

    @Test("takes a session that comes when nobody wants it any more")
    func takesLate() {
        var host = FleetHost()
        _ = host.want()
        _ = host.on(.giveUp)
        #expect(host.answer(.session(generation: 5, [1])) == [.adopt(generation: 5, [1])])
    }

    @Test("gives back the lease of an attempt that was given up before it asks for another")
    func givesBackFirst() {
        var host = FleetHost()
        _ = host.want()
        _ = host.on(.giveUp)
        #expect(host.want(token: "u").isEmpty)
        #expect(host.answer(.granted(generation: 5, latches: 0)) == [FleetHost.release(5)])
        #expect(host.answer(.done(generation: 5)) == [FleetHost.acquire(token: "u")])
    }

    @Test("goes on with a login that nobody waits for any more")
    func goesOn() {
        var host = FleetHost.loggingIn()
        #expect(host.on(.giveUp).isEmpty)
        #expect(host.machine.isLoggingIn)
    }
}
