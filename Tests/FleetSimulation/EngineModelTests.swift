// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EngineModel
import Testing

@Suite("The model of a session engine")
struct EngineModelTests {
    private let start: Int64 = 1_000_000
    private let ann = LeaseToken("a"), bob = LeaseToken("b")

    /// An engine at which `ann` has the lease, and the generation of it.
    private func leased() throws -> (engine: EngineModel, generation: UInt64) {
        var engine = EngineModel()
        let reply = engine.carryOut(.acquire(after: 0, token: ann, life: .seconds(6)), for: "s", now: start)
        guard case .granted(let generation, latches: 0) = reply else {
            throw Unexpected(reply: reply)
        }
        return (engine, generation)
    }

    private struct Unexpected: Error {
        let reply: EngineReply
    }

    private func publish(_ token: LeaseToken, _ generation: UInt64, _ session: [UInt8] = [1]) -> EngineRequest {
        .publish(token: token, generation: generation, session: session, life: .seconds(60))
    }

    private func fail(
        _ token: LeaseToken, _ generation: UInt64, pause: Duration = .seconds(1), latches: [SharedLatch] = []
    ) -> EngineRequest {
        .fail(
            token: token, generation: generation, failure: [9], pause: pause, longest: .seconds(3), latches: latches)
    }

    @Test("grants one lease at a time, the same once more to the same token, and the next when it has run out")
    func leases() throws {
        var (engine, generation) = try leased()
        let other = EngineRequest.acquire(after: 0, token: bob, life: .seconds(6))
        #expect(engine.carryOut(other, for: "s", now: start + 2_000) == .wait(.seconds(4)))
        #expect(
            engine.carryOut(.acquire(after: 0, token: ann, life: .seconds(6)), for: "s", now: start + 3_000)
                == .granted(generation: generation, latches: 0))
        #expect(engine.carryOut(other, for: "s", now: start + 8_999) == .wait(.milliseconds(1)))
        #expect(
            engine.carryOut(other, for: "s", now: start + 9_000) == .granted(generation: generation + 1, latches: 0))
        #expect(engine.carryOut(publish(ann, generation), for: "s", now: start + 9_000) == .stale)
        #expect(engine.takeNews().isEmpty)
    }

    @Test("publishes also after the lease has run out, where nobody came, and says so again where the answer was lost")
    func publishes() throws {
        var (engine, generation) = try leased()
        #expect(
            engine.carryOut(publish(ann, generation), for: "s", now: start + 20_000) == .done(generation: generation))
        #expect(engine.takeNews() == [.session(name: "s", generation: generation)])
        #expect(
            engine.carryOut(.drop(generation: generation), for: "s", now: start + 20_001)
                == .done(generation: generation))
        #expect(
            engine.carryOut(publish(ann, generation), for: "s", now: start + 20_002) == .done(generation: generation))
        #expect(engine.carryOut(.fetch(after: 0), for: "s", now: start + 20_003) == .nothing)
    }

    @Test("answers all with a failure for a pause that doubles, and is given the lease back without one")
    func fails() throws {
        var (engine, generation) = try leased()
        #expect(
            engine.carryOut(fail(ann, generation, pause: .zero), for: "s", now: start) == .done(generation: generation))
        var now = start
        for rest in [1, 2, 3, 3] as [Int64] {
            let reply = engine.carryOut(.acquire(after: 0, token: bob, life: .seconds(6)), for: "s", now: now)
            guard case .granted(let next, _) = reply else { throw Unexpected(reply: reply) }
            #expect(engine.carryOut(fail(bob, next), for: "s", now: now) == .done(generation: next))
            let refused = engine.carryOut(.acquire(after: 0, token: ann, life: .seconds(6)), for: "s", now: now)
            #expect(refused == .failed([9], for: .seconds(rest)))
            now += rest * 1_000
        }
    }

    @Test("closes the latches of a login whose lease is another's by now")
    func closes() throws {
        var (engine, generation) = try leased()
        let latch = SharedLatch(digest: "d", challenge: "c", latch: Latch(reason: .rejected, closedAt: start))
        _ = engine.carryOut(.acquire(after: 0, token: bob, life: .seconds(6)), for: "s", now: start + 7_000)
        #expect(engine.carryOut(fail(ann, generation, latches: [latch]), for: "s", now: start + 8_000) == .stale)
        #expect(engine.latches == ["d": latch])
        #expect(engine.latchCount > UInt64(start))
        #expect(engine.open(challenge: "c", now: start) == 1)
        #expect(engine.latches.isEmpty)
    }

    @Test("never gives a generation out twice, also when it has lost its data")
    func losesData() throws {
        let (_, generation) = try leased()
        var engine = EngineModel()
        let reply = engine.carryOut(.acquire(after: 0, token: bob, life: .seconds(6)), for: "s", now: start + 50)
        guard case .granted(let next, _) = reply else { throw Unexpected(reply: reply) }
        #expect(next > generation)
        #expect(engine.carryOut(publish(ann, generation), for: "s", now: start + 51) == .stale)
        engine = EngineModel()
        #expect(engine.carryOut(publish(ann, generation), for: "s", now: start + 51) == .done(generation: generation))
    }

    @Test("takes an offer where there is no later session, and then no publication of an earlier lease")
    func offers() throws {
        var (engine, generation) = try leased()
        let offer = EngineRequest.offer(after: 0, session: [2], life: .seconds(60))
        #expect(engine.carryOut(offer, for: "s", now: start) == .done(generation: generation + 1))
        #expect(engine.carryOut(offer, for: "s", now: start) == .session(generation: generation + 1, [2]))
        #expect(engine.carryOut(publish(ann, generation), for: "s", now: start) == .stale)
        #expect(engine.carryOut(.fetch(after: generation), for: "s", now: start + 60_000) == .nothing)
    }
}
