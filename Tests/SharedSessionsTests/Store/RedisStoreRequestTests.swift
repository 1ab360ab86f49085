// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Redis
import Testing

@testable import SharedSessions

/// Requests to a real session store.
@Suite("Requests to a session store", .timeLimit(.minutes(10)))
struct RedisStoreRequestTests {
    private let ann = LeaseToken("a"), bob = LeaseToken("b")

    @Test("a store grants one lease at a time, repeats and extends it, and grants the next after its end")
    func leases() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        let first = try #require(await rig.granted(ann))
        #expect(first > 1_600_000_000_000)
        #expect(await rig.granted(ann) == first)
        guard case .wait(let rest)? = await rig.ask(.acquire(after: 0, token: bob, lifetime: .seconds(60))) else {
            Issue.record("no wait")
            return
        }
        #expect(rest > .zero && rest <= .seconds(60))
        #expect(await rig.ask(.extend(token: bob, generation: first, lifetime: .seconds(60))) == .stale)
        #expect(await rig.ask(.extend(token: ann, generation: first + 1, lifetime: .seconds(60))) == .stale)
        // With a lifetime of zero the lease has expired, and can still be extended until another node requests one.
        for life in [Duration.zero, .seconds(60), .zero] {
            #expect(await rig.ask(.extend(token: ann, generation: first, lifetime: life)) == .done(generation: first))
        }
        #expect(await rig.granted(bob) == first + 1)
        #expect(await rig.ask(.extend(token: ann, generation: first, lifetime: .seconds(60))) == .stale)
        #expect(await rig.granted(ann, for: "other") != nil)
    }

    @Test("a store leases one session of an account at a time, and the next as soon as that login ends")
    func turns() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        for end in ["published", "failed", "run out", "offered"] {
            let first = try #require(await rig.granted(ann, for: "\(end).read"))
            #expect(await rig.granted(bob, for: "other.\(end)") != nil)
            let second = StoreRequest.acquire(after: 0, token: bob, lifetime: .seconds(60))
            let wait = StoreReply.wait(.milliseconds(RedisScript.turnWait))
            #expect(await rig.ask(second, for: "\(end).write") == wait, "\(end)")
            // The extended lease lasts, and its holder may request it again.
            let longer = StoreRequest.extend(token: ann, generation: first, lifetime: .seconds(60))
            #expect(await rig.ask(longer, for: "\(end).read") == .done(generation: first))
            #expect(await rig.granted(ann, for: "\(end).read") == first)
            #expect(await rig.ask(second, for: "\(end).write") == wait, "\(end)")
            let request: StoreRequest =
                switch end {
                case "published": publish(ann, first, [1])
                case "failed":
                    .fail(
                        token: ann, generation: first, failure: [1], pause: .zero, longestPause: .zero, latches: [])
                case "offered": .offer(after: first, session: [1], lifetime: .seconds(60))
                default: .extend(token: ann, generation: first, lifetime: .zero)
                }
            #expect(await rig.ask(request, for: "\(end).read") != .stale)
            #expect(await rig.granted(bob, for: "\(end).write") != nil, "\(end)")
            guard end == "run out" else { continue }
            // Its request may be repeated, if no answer came.
            let again = StoreRequest.acquire(after: 0, token: ann, lifetime: .seconds(60))
            #expect(await rig.ask(again, for: "\(end).read") == wait)
        }
    }

    @Test("a published session is there for all until it ends, and no lease is granted meanwhile")
    func publishes() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        let generation = try #require(await rig.granted(ann))
        let bytes = Array(0...UInt8.max)
        #expect(await rig.ask(publish(bob, generation, bytes)) == .stale)
        #expect(await rig.ask(.fetch(after: 0)) == .nothing)
        #expect(await rig.ask(publish(ann, generation, bytes)) == .done(generation: generation))
        // The answer may have been lost.
        #expect(await rig.ask(publish(ann, generation, [1])) == .done(generation: generation))
        #expect(await rig.ask(.fetch(after: 0)) == .session(generation: generation, bytes))
        #expect(await rig.ask(.fetch(after: generation)) == .nothing)
        #expect(
            await rig.ask(.acquire(after: 0, token: bob, lifetime: .seconds(60)))
                == .session(generation: generation, bytes)
        )
        let life = Int(try await server.command("PTTL", "{countersign}:session:bank").filter(\.isNumber)) ?? 0
        #expect(life > 0 && life <= 60_000)
        #expect(await rig.ask(.drop(generation: generation - 1)) == .nothing)
        #expect(await rig.ask(.drop(generation: .max)) == .done(generation: .max))
        #expect(await rig.ask(.fetch(after: 0)) == .nothing)
        #expect(await rig.granted(bob, after: generation + 10) == generation + 11)
        #expect(
            await rig.ask(.publish(token: bob, generation: generation + 11, session: bytes, lifetime: .zero))
                == .done(generation: generation + 11))
        #expect(await rig.ask(.fetch(after: 0)) == .nothing)
    }

    @Test("a failure is answered during a pause that doubles, and its latches close without the lease")
    func fails() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        func fail(_ generation: UInt64, _ pause: Duration, _ longestPause: Duration) -> StoreRequest {
            .fail(
                token: ann, generation: generation, failure: [0, 255], pause: pause, longestPause: longestPause,
                latches: [SharedLatch(digest: "d\(generation)", challenge: "c", latch: .closed)])
        }
        var generation = try #require(await rig.granted(ann))
        // These pauses are counted, but limited to zero.
        for _ in 0..<3 {
            #expect(await rig.ask(fail(generation, .seconds(10), .zero)) == .done(generation: generation))
            #expect(await rig.ask(fail(generation, .seconds(10), .zero)) == .done(generation: generation))
            generation = try #require(await rig.granted(ann))
        }
        let began = ContinuousClock.now
        #expect(await rig.ask(fail(generation, .seconds(1_000), .seconds(100_000))) == .done(generation: generation))
        guard
            case .failed([0, 255], for: let rest)? = await rig.ask(
                .acquire(after: 0, token: bob, lifetime: .seconds(1)))
        else {
            Issue.record("no failure")
            return
        }
        // The rest is shorter by the time since, and the session store counts whole milliseconds.
        let gone = ContinuousClock.now - began + .milliseconds(1)
        #expect(rest >= .seconds(8_000) - gone && rest <= .seconds(8_000))
        #expect(await rig.ask(fail(generation + 7, .seconds(1), .seconds(1))) == .stale)
        #expect(await rig.latches()?.latches.count == 5)
        // An offer, or an operator, ends the pause.
        #expect(await rig.ask(.drop(generation: 0)) == .done(generation: 0))
        #expect(await rig.granted(bob) == generation + 1)
    }

    @Test("an offered session is taken unless there is a later one")
    func offers() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        let generation = try #require(await rig.granted(ann))
        let offer = StoreRequest.offer(after: 0, session: [1], lifetime: .seconds(60))
        #expect(await rig.ask(offer) == .done(generation: generation + 1))
        #expect(
            await rig.ask(.offer(after: 0, session: [2], lifetime: .seconds(60)))
                == .session(generation: generation + 1, [1]))
        #expect(await rig.ask(publish(ann, generation, [3])) == .stale)
        #expect(await rig.ask(.fetch(after: 0)) == .session(generation: generation + 1, [1]))
    }

    @Test("a subscriber gets the events of its sessions, and every node those of latches")
    func news() async throws {
        let server = try await RedisServer()
        let (teller, rig) = (try await RedisStoreRig(server), try await RedisStoreRig(server))
        await rig.follow("bank", "ä: b", "bank")
        #expect(await rig.events.next() == .connected)
        // Commands after the subscription on the same connection are known to be later.
        while try await server.command("PUBSUB", "NUMSUB", "{countersign}:news:ä: b").contains("0") {}
        let generation = try #require(await teller.granted(ann, for: "ä: b"))
        _ = await teller.ask(publish(ann, generation, [1]), for: "unknown")
        _ = await teller.ask(publish(ann, generation, [1]), for: "ä: b")
        #expect(await rig.events.next() == .sessionChanged(name: "ä: b", generation: generation))
        #expect(await teller.close([SharedLatch(digest: "d", challenge: "c", latch: .closed)]))
        let count = try #require(await teller.latches()?.count)
        #expect(await rig.events.next() == .attemptsChanged(count: count))
        _ = await teller.ask(.drop(generation: generation), for: "ä: b")
        #expect(await rig.events.next() == .sessionChanged(name: "ä: b", generation: generation))
    }

    @Test("many requests of one turn get their own replies")
    func many() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<500 {
                group.addTask {
                    let name = "s\(number)"
                    let bytes = Array(name.utf8)
                    let reply = await rig.ask(.offer(after: 0, session: bytes, lifetime: .seconds(60)), for: name)
                    guard case .done(let generation)? = reply else {
                        Issue.record("\(String(describing: reply))")
                        return
                    }
                    #expect(await rig.ask(.fetch(after: 0), for: name) == .session(generation: generation, bytes))
                }
            }
        }
        // The session store has forgotten the script.
        _ = try await server.command("SCRIPT", "FLUSH")
        #expect(await rig.ask(.fetch(after: .max), for: "s1") == .nothing)
        #expect(try await server.command("SCRIPT", "EXISTS", RedisScript.digest).contains("1"))
        // All keys have the prefix, in one slot, and those of a session expire.
        let keys = try await server.command("KEYS", "*").split(separator: "\n")
        #expect(keys.count == 1000 && keys.allSatisfy { $0.hasPrefix("{countersign}:") })
        #expect(!(try await server.command("PTTL", "{countersign}:state:s1")).contains("-1"))
    }

    private func publish(_ token: LeaseToken, _ generation: UInt64, _ bytes: [UInt8]) -> StoreRequest {
        .publish(token: token, generation: generation, session: bytes, lifetime: .seconds(60))
    }
}

extension RedisStoreRig {
    /// Returns the generation of the lease that `token` is granted.
    func granted(_ token: LeaseToken, after: UInt64 = 0, for name: String = "bank") async -> UInt64? {
        let reply = await ask(.acquire(after: after, token: token, lifetime: .seconds(60)), for: name)
        if case .granted(let generation, _)? = reply { return generation }
        Issue.record("\(String(describing: reply))")
        return nil
    }
}

extension Latch {
    /// A latch that was closed just now, until an operator opens it.
    static var closed: Latch { Latch(reason: .rejected, closedAt: wallClock()) }
}
