// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("A host that logs in for its fleet")
struct FleetLeaseTests {
    private let latch = SharedLatch(
        digest: "d", challenge: "bank", latch: Latch(reason: .rejected, closedAt: 1))

    @Test("extends its lease at each third of its life while the login runs")
    func extends() {
        var host = FleetHost.loggingIn()
        #expect(host.machine.due == 3_000)
        #expect(host.fire() == [FleetHost.extend(5)])
        host.now += 100
        #expect(host.answer(.done(generation: 5)).isEmpty)
        #expect(host.machine.due == 5_000)
    }

    @Test("asks again soon for more time where no answer came")
    func extendsAgain() {
        var host = FleetHost.loggingIn()
        _ = host.fire()
        _ = host.answer(nil)
        #expect(host.machine.due == 3_500)
        #expect(host.fire() == [FleetHost.extend(5)])
    }

    @Test("goes on when the lease is lost, and leaves it to the fence what becomes of the session")
    func losesLease() {
        var host = FleetHost.loggingIn()
        _ = host.fire()
        #expect(host.answer(.stale).isEmpty)
        #expect(host.machine.due == nil)
        let told = host.on(.won(session: [1], life: .seconds(60)))
        #expect(told == [.finish(.won(generation: 5)), FleetHost.publish(5, [1], life: .seconds(60))])
        #expect(host.answer(.stale).isEmpty)
        #expect(host.fire() == [.ask(.fetch(after: 5))])
        #expect(host.answer(.session(generation: 6, [2])) == [.adopt(generation: 6, [2])])
    }

    @Test("keeps others waiting no longer than a login may take")
    func endsExtending() {
        var host = FleetHost.loggingIn()
        for _ in 0..<1_000 where host.machine.due != nil {
            #expect(host.fire() == [FleetHost.extend(5)])
            _ = host.answer(.done(generation: 5))
        }
        #expect(host.machine.due == nil)
        #expect(host.now >= 600_000 && host.now < 610_000)
    }

    @Test("tells of a failure, its pause and the latches that it closed")
    func fails() {
        var host = FleetHost.loggingIn()
        let told = host.on(.failed([3], pause: .seconds(1), longest: .seconds(60), latches: [latch]))
        let request = EngineRequest.fail(
            token: LeaseToken("t"), generation: 5, failure: [3], pause: .seconds(1), longest: .seconds(60),
            latches: [latch])
        #expect(told == [.finish(.failed), .ask(request)])
        #expect(host.answer(nil).isEmpty)
        #expect(host.fire() == [.ask(request)])
        #expect(host.answer(.done(generation: 5)).isEmpty)
        #expect(!host.machine.hasUntold)
    }

    @Test("gives the lease back when the login is broken off", arguments: [true, false])
    func cancels(isUnshareable: Bool) {
        var host = FleetHost.loggingIn()
        let told = host.on(isUnshareable ? .won(session: nil, life: .seconds(60)) : .cancelled)
        let outcome = isUnshareable ? FleetMachine.Outcome.won(generation: nil) : .failed
        #expect(told == [.finish(outcome), FleetHost.release(5)])
    }

    @Test("publishes again until it is answered, for what is left of the session's life, less often each time")
    func publishesAgain() {
        var host = FleetHost.loggingIn()
        _ = host.on(.won(session: [1], life: .seconds(60)))
        var pauses: [Int64] = []
        for _ in 0..<8 {
            let before = host.now
            _ = host.answer(nil)
            let told = host.fire()
            pauses.append(host.now - before)
            #expect(told == [FleetHost.publish(5, [1], life: .milliseconds(61_000 - host.now))])
        }
        #expect(pauses == pauses.sorted())
        #expect(pauses.first.map { $0 < 250 } == true)
        #expect(pauses.last.map { $0 > 2_000 && $0 <= 5_000 } == true)
    }

    @Test("publishes nothing that has ended")
    func doesNotPublish() {
        var host = FleetHost.loggingIn()
        _ = host.on(.won(session: [1], life: .seconds(60)))
        host.now += 60_000
        #expect(host.answer(nil).isEmpty)
        #expect(!host.machine.hasUntold)
    }

    @Test("gives the lease back instead of publishing a session that turned out to be of no use")
    func withdraws() {
        var host = FleetHost.loggingIn()
        _ = host.on(.won(session: [1], life: .seconds(60)))
        #expect(host.want(after: 5, token: "u").isEmpty)
        #expect(host.answer(nil) == [FleetHost.release(5)])
        #expect(host.answer(.done(generation: 5)) == [FleetHost.acquire(after: 5, token: "u")])
    }

    @Test("never asks for the lease with a token that a login has begun with")
    func tokensAreSpent() {
        var host = FleetHost.loggingIn()
        for event in [.connected, .told(generation: 6), .away, .connected, .timer] as [FleetMachine.Event] {
            for action in host.on(event) {
                if case .ask(.acquire) = action { Issue.record("asks again after \(event)") }
            }
            _ = host.answer(nil)
        }
        #expect(host.machine.isLoggingIn)
    }
}
