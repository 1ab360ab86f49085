// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("A host whose session engine does not answer")
struct FleetOutageTests {
    /// A host that has won a session alone.
    private func alone() -> FleetHost {
        var host = FleetHost(isEngineThere: false)
        _ = host.want(after: 3)
        _ = host.fire()
        _ = host.answer(nil)
        #expect(host.on(.won(session: [1], life: .seconds(60))) == [.finish(.won(generation: nil))])
        return host
    }

    @Test("asks again with the same token where an answer is lost")
    func asksAgain() {
        var host = FleetHost()
        _ = host.want()
        #expect(host.answer(nil).isEmpty)
        #expect(host.machine.due == 1_251)
        #expect(host.fire() == [FleetHost.acquire()])
        #expect(host.answer(.granted(generation: 1, latches: 0)) == [.begin(generation: 1)])
    }

    @Test("logs in alone after a delay by chance, once it has asked once more", arguments: [0, 0.25, 0.999])
    func logsInAlone(chance: Double) {
        var host = FleetHost(isEngineThere: false)
        host.chance = chance
        #expect(host.want().isEmpty)
        #expect(host.machine.due == 1_000 + Int64(5_000 * chance))
        #expect(host.fire() == [FleetHost.acquire()])
        #expect(host.answer(nil) == [.begin(generation: nil)])
    }

    @Test("waits for nobody's lease when nobody could tell of its end")
    func stopsWaiting() {
        var host = FleetHost()
        _ = host.want()
        _ = host.answer(.wait(.seconds(6)))
        #expect(host.on(.away).isEmpty)
        #expect(host.machine.due == 3_500)
        #expect(host.fire() == [FleetHost.acquire()])
    }

    @Test("asks at once when the engine is back, and does not log in alone")
    func comesBack() {
        var host = FleetHost(isEngineThere: false)
        _ = host.want()
        #expect(host.on(.connected) == [FleetHost.acquire()])
        #expect(host.answer(.wait(.seconds(6))).isEmpty)
    }

    @Test("counts the engine as away when it answers nothing any more")
    func countsAsAway() {
        var host = FleetHost()
        _ = host.want()
        _ = host.answer(nil)
        _ = host.fire()
        #expect(host.answer(nil).isEmpty)
        #expect(host.fire() == [FleetHost.acquire()])
        #expect(host.answer(nil) == [.begin(generation: nil)])
    }

    @Test("offers a session that it won alone when the engine is back, a little later by chance")
    func offers() {
        var host = alone()
        #expect(host.on(.connected).isEmpty)
        #expect(host.machine.due == host.now + 500)
        let left = 60_000 - 500
        #expect(host.fire() == [.ask(.offer(after: 3, session: [1], life: .milliseconds(left)))])
        #expect(host.answer(.done(generation: 8)).isEmpty)
        #expect(host.machine.present == 8)
    }

    @Test("takes the session of the fleet where another host was first")
    func takesOther() {
        var host = alone()
        _ = host.on(.connected)
        _ = host.fire()
        #expect(host.answer(.session(generation: 8, [2])) == [.adopt(generation: 8, [2])])
        #expect(!host.machine.hasUntold)
    }

    @Test("knows its own session again where the answer to the offer was lost")
    func knowsOwn() {
        var host = alone()
        _ = host.on(.connected)
        _ = host.fire()
        _ = host.answer(nil)
        _ = host.fire()
        #expect(host.answer(.session(generation: 8, [1])).isEmpty)
        #expect(host.machine.present == 8)
    }

    @Test("does not offer a session that turned out to be of no use")
    func withdrawsOffer() {
        var host = alone()
        _ = host.want(after: 3, token: "u")
        #expect(!host.machine.hasUntold)
    }

    @Test("does not take back its own session that was refused, where the answer to the offer of it was lost")
    func knowsRefused() {
        var host = alone()
        _ = host.on(.connected)
        _ = host.fire()
        _ = host.want(after: 3, token: "u")
        #expect(host.answer(nil) == [FleetHost.acquire(after: 3, token: "u")])
        #expect(host.answer(.session(generation: 8, [1])) == [FleetHost.acquire(after: 8, token: "u")])
    }

    @Test("tells of a failure when the engine is back")
    func tellsLater() {
        var host = FleetHost.loggingIn()
        _ = host.on(.away)
        #expect(host.on(.failed([3], pause: .seconds(1), longest: .seconds(60), latches: [])) == [.finish(.failed)])
        #expect(host.machine.due == nil)
        guard case .ask(.fail)? = host.on(.connected).first else { return #expect(Bool(false), "nothing is told") }
    }

    @Test("extends its lease at once when the engine is back")
    func extendsAtOnce() {
        var host = FleetHost.loggingIn()
        _ = host.on(.away)
        #expect(host.machine.due == nil)
        #expect(host.on(.connected) == [FleetHost.extend(5)])
    }
}
