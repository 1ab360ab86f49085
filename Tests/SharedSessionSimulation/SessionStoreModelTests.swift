// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SessionStoreModel
import SharedSessions
import Testing

@Suite("The model of a session store")
struct SessionStoreModelTests {
    private let start: Int64 = 1_000_000
    private let ann = LeaseToken("a"), bob = LeaseToken("b")

    /// Returns a session store at which `ann` has the lease, and the lease's generation.
    private func leased() throws -> (sessionStore: SessionStoreModel, generation: UInt64) {
        var sessionStore = SessionStoreModel()
        let reply = sessionStore.carryOut(.acquire(after: 0, token: ann, lifetime: .seconds(6)), for: "s", now: start)
        guard case .granted(let generation, latches: 0) = reply else {
            throw Unexpected(reply: reply)
        }
        return (sessionStore, generation)
    }

    private struct Unexpected: Error {
        let reply: StoreReply
    }

    private func publish(_ token: LeaseToken, _ generation: UInt64, _ session: [UInt8] = [1]) -> StoreRequest {
        .publish(token: token, generation: generation, session: session, lifetime: .seconds(60))
    }

    private func fail(
        _ token: LeaseToken, _ generation: UInt64, pause: Duration = .seconds(1), latches: [SharedLatch] = []
    ) -> StoreRequest {
        .fail(
            token: token, generation: generation, failure: [9], pause: pause, longestPause: .seconds(3),
            latches: latches)
    }

    @Test("the model grants one lease at a time, repeats it for its token, and grants the next after its end")
    func leases() throws {
        var (sessionStore, generation) = try leased()
        let other = StoreRequest.acquire(after: 0, token: bob, lifetime: .seconds(6))
        #expect(sessionStore.carryOut(other, for: "s", now: start + 2_000) == .wait(.seconds(4)))
        #expect(
            sessionStore.carryOut(.acquire(after: 0, token: ann, lifetime: .seconds(6)), for: "s", now: start + 3_000)
                == .granted(generation: generation, latches: 0))
        #expect(sessionStore.carryOut(other, for: "s", now: start + 8_999) == .wait(.milliseconds(1)))
        #expect(
            sessionStore.carryOut(other, for: "s", now: start + 9_000)
                == .granted(generation: generation + 1, latches: 0))
        #expect(sessionStore.carryOut(publish(ann, generation), for: "s", now: start + 9_000) == .stale)
        #expect(sessionStore.takeEvents().isEmpty)
    }

    @Test("the model publishes under an expired lease that nobody replaced, and repeats a lost reply")
    func publishes() throws {
        var (sessionStore, generation) = try leased()
        #expect(
            sessionStore.carryOut(publish(ann, generation), for: "s", now: start + 20_000)
                == .done(generation: generation))
        #expect(sessionStore.takeEvents() == [.sessionChanged(name: "s", generation: generation)])
        #expect(
            sessionStore.carryOut(.drop(generation: generation), for: "s", now: start + 20_001)
                == .done(generation: generation))
        #expect(
            sessionStore.carryOut(publish(ann, generation), for: "s", now: start + 20_002)
                == .done(generation: generation))
        #expect(sessionStore.carryOut(.fetch(after: 0), for: "s", now: start + 20_003) == .nothing)
    }

    @Test("the model answers with a failure during a pause that doubles, and not after a release")
    func fails() throws {
        var (sessionStore, generation) = try leased()
        #expect(
            sessionStore.carryOut(fail(ann, generation, pause: .zero), for: "s", now: start)
                == .done(generation: generation))
        var now = start
        for rest in [1, 2, 3, 3] as [Int64] {
            let reply = sessionStore.carryOut(.acquire(after: 0, token: bob, lifetime: .seconds(6)), for: "s", now: now)
            guard case .granted(let next, _) = reply else { throw Unexpected(reply: reply) }
            #expect(sessionStore.carryOut(fail(bob, next), for: "s", now: now) == .done(generation: next))
            let refused = sessionStore.carryOut(
                .acquire(after: 0, token: ann, lifetime: .seconds(6)), for: "s", now: now)
            #expect(refused == .failed([9], for: .seconds(rest)))
            now += rest * 1_000
        }
    }

    @Test("the model closes the latches of a login that lost its lease")
    func closes() throws {
        var (sessionStore, generation) = try leased()
        let latch = SharedLatch(digest: "d", challenge: "c", latch: Latch(reason: .rejected, closedAt: start))
        _ = sessionStore.carryOut(.acquire(after: 0, token: bob, lifetime: .seconds(6)), for: "s", now: start + 7_000)
        #expect(sessionStore.carryOut(fail(ann, generation, latches: [latch]), for: "s", now: start + 8_000) == .stale)
        #expect(sessionStore.latches == ["d": latch])
        #expect(sessionStore.latchCount > UInt64(start))
        #expect(sessionStore.open(challenge: "c", now: start) == 1)
        #expect(sessionStore.latches.isEmpty)
    }

    @Test("the model gives no generation out twice, even after a loss of data")
    func losesData() throws {
        let (_, generation) = try leased()
        var sessionStore = SessionStoreModel()
        let reply = sessionStore.carryOut(
            .acquire(after: 0, token: bob, lifetime: .seconds(6)), for: "s", now: start + 50)
        guard case .granted(let next, _) = reply else { throw Unexpected(reply: reply) }
        #expect(next > generation)
        #expect(sessionStore.carryOut(publish(ann, generation), for: "s", now: start + 51) == .stale)
        sessionStore = SessionStoreModel()
        #expect(
            sessionStore.carryOut(publish(ann, generation), for: "s", now: start + 51) == .done(generation: generation))
    }

    @Test("the model takes an offer if there is no later session, and then no publication of an earlier lease")
    func offers() throws {
        var (sessionStore, generation) = try leased()
        let offer = StoreRequest.offer(after: 0, session: [2], lifetime: .seconds(60))
        #expect(sessionStore.carryOut(offer, for: "s", now: start) == .done(generation: generation + 1))
        #expect(sessionStore.carryOut(offer, for: "s", now: start) == .session(generation: generation + 1, [2]))
        #expect(sessionStore.carryOut(publish(ann, generation), for: "s", now: start) == .stale)
        #expect(sessionStore.carryOut(.fetch(after: generation), for: "s", now: start + 60_000) == .nothing)
    }
}
