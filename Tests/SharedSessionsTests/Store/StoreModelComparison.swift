// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SessionStoreModel
import TestSupport
import Testing

@testable import SharedSessions

/// Compares the replies and events of a real session store with those of the model.
@Suite("A session store and its model", .timeLimit(.minutes(10)))
struct StoreModelComparison {
    @Test("a real store and its model give the same replies and events")
    func requests() async throws {
        var kinds: Set<String> = []
        for seed in UInt64(1)...8 {
            let comparison = try await compare(seed: seed)
            guard !comparison.hasFailed else { return }
            #expect(comparison.toldCount > 60)
            kinds.formUnion(comparison.kinds)
        }
        #expect(kinds == ["granted", "wait", "session", "failed", "done", "stale", "nothing"])
    }

    private func compare(seed: UInt64) async throws -> Comparison {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        var comparison = Comparison(seed: seed)
        await rig.follow("a.1", "a.2", "b")
        #expect(await rig.events.next() == .connected)
        // All earlier commands of that connection are done.
        while try await server.command("PUBSUB", "NUMSUB", "{countersign}:news:b").contains("0") {}
        for step in 0..<600 where !comparison.hasFailed {
            try await comparison.step(rig, "seed \(seed), step \(step)")
        }
        return comparison
    }
}

/// Comparison by pairs of generations: the counters of both start with their clocks, which differ.
private struct Comparison {
    private struct Pair: Equatable {
        var real: UInt64
        var model: UInt64
    }

    private static let tokens = ["x", "y", "z"].map { LeaseToken($0) }

    private var model = SessionStoreModel()
    private var generator: SplitMix
    private var pairs: [String: [Pair]] = [:]
    private var counts: Pair?
    private(set) var toldCount = 0
    /// Kinds of answers so far.
    private(set) var kinds: Set<String> = []
    private(set) var hasFailed = false

    init(seed: UInt64) { generator = SplitMix(state: seed) }

    /// Sends one request to both.
    mutating func step(_ rig: RedisStoreRig, _ place: String) async throws {
        let name = pick(["a.1", "a.2", "b"])
        switch Int.random(in: 0..<20, using: &generator) {
        case 0:
            let latches = latches()
            model.close(latches, now: wallClock())
            compare(await rig.close(latches), true, place)
        case 1:
            let challenge = pick(["p", "q"])
            compare(await rig.open(challenge), model.open(challenge: challenge, now: wallClock()), place)
        case 2:
            let found = await rig.latches()
            compare(meaning(found?.latches ?? []), meaning(Array(model.latches.values)), place)
            compare(found?.usedCodes, model.usedCodes, place)
            compareCounts(found?.count, model.latchCount, place)
        case 3:
            let codes = UsedCodes(ends: [
                pick(["a", "b"]): wallClock() + Int64.random(in: 0..<60_000, using: &generator)
            ])
            model.markUsed(codes, now: wallClock())
            compare(await rig.markUsed(codes.ends), true, place)
        default:
            let (real, modelled) = request(for: name)
            let answer = await rig.ask(real, for: name)
            let expected = model.carryOut(modelled, for: name, now: wallClock())
            kinds.insert(String("\(expected)".prefix { $0 != "(" }))
            compare(answer, expected, for: name, "\(place): \(modelled)")
        }
        for event in model.takeEvents() {
            toldCount += 1
            switch (await rig.events.next(), event) {
            case (.sessionChanged(let name, let real), .sessionChanged(let other, let generation)):
                compare(name, other, place)
                compareGenerations(real, generation, for: name, place)
            case (.attemptsChanged(let real), .attemptsChanged(let count)): compareCounts(real, count, place)
            case (let real, let other): fail("\(place): told \(real), and not \(other)")
            }
        }
    }

    /// Returns a request with the generations of each. Lifetimes and pauses are long or zero, since both clocks run.
    private mutating func request(for name: String) -> (real: StoreRequest, model: StoreRequest) {
        var token = pick(Self.tokens)
        let life = pick([Duration.zero, .zero, .zero, .seconds(600), .seconds(900)])
        let known = (pairs[name] ?? []) + [Pair(real: 0, model: 0), Pair(real: 7, model: 7)]
        // Usually one of the latest.
        var generation = pick(known.sorted { $0.model > $1.model }.prefix(3) + known)
        if generation.real > 7, Int.random(in: 0..<8, using: &generator) == 0 {
            generation = Pair(real: generation.real + 1, model: generation.model + 1)
        }
        let entry = model.entries[name]
        if let lease = entry?.lease.map({ ($0.token, $0.generation) }) ?? entry?.ended,
            let pair = known.first(where: { $0.model == lease.1 }), Bool.random(using: &generator)
        {
            // The last lease, as its holder would send it.
            (token, generation) = (lease.0, pair)
        }
        let pauses: [(Duration, Duration)] = [
            (.zero, .zero), (.seconds(600), .zero), (.seconds(600), .seconds(2_000)),
        ]
        let (pause, longest) = pick(pauses)
        let bytes = [UInt8.random(in: 0...255, using: &generator)]
        let latches = Bool.random(using: &generator) ? latches() : []
        let kind = Int.random(in: 0..<12, using: &generator)
        func make(_ generation: UInt64) -> StoreRequest {
            switch kind {
            case 0...2: .acquire(after: generation, token: token, lifetime: life)
            case 3: .extend(token: token, generation: generation, lifetime: life)
            case 4, 5: .publish(token: token, generation: generation, session: bytes, lifetime: life)
            case 6...8:
                .fail(
                    token: token, generation: generation, failure: bytes, pause: pause, longestPause: longest,
                    latches: latches)
            case 9: .offer(after: generation, session: bytes, lifetime: life)
            case 10: .fetch(after: generation)
            default: .drop(generation: generation)
            }
        }
        return (make(generation.real), make(generation.model))
    }

    private mutating func latches() -> [SharedLatch] {
        (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            let number = Int64.random(in: 0..<6, using: &generator)
            return SharedLatch(
                digest: "d\(number)", challenge: pick(["p", "q"]),
                latch: Latch(
                    reason: pick([.locked, .rejected]), closedAt: wallClock() - number * 1_000_000,
                    opensAt: pick([nil, wallClock() + 9_000_000])))
        }
    }

    private mutating func pick<Element>(_ choices: [Element]) -> Element {
        choices[Int.random(in: 0..<choices.count, using: &generator)]
    }

    // MARK: Comparing

    private mutating func compare(_ real: StoreReply?, _ model: StoreReply, for name: String, _ place: String) {
        switch (real, model) {
        case (.granted(let real, let realCount), .granted(let model, let count)):
            compareGenerations(real, model, for: name, place)
            compareCounts(realCount, count, place)
        case (.session(let real, let bytes), .session(let model, let others)):
            compareGenerations(real, model, for: name, place)
            compare(bytes, others, place)
        case (.failed(let bytes, let rest), .failed(let others, let other)):
            compare(bytes, others, place)
            compare(isNear(rest, other), true, place)
        case (.wait(let rest), .wait(let other)): compare(isNear(rest, other), true, "\(place): \(rest), \(other)")
        case (.done(let real), .done(let model)): compareGenerations(real, model, for: name, place)
        case (.stale, .stale), (.nothing, .nothing): break
        default: fail("\(place): \(String(describing: real)), and not \(model)")
        }
    }

    private func isNear(_ one: Duration, _ other: Duration) -> Bool { abs((one - other) / .seconds(1)) < 60 }

    private mutating func compareGenerations(_ real: UInt64, _ model: UInt64, for name: String, _ place: String) {
        var known = pairs[name] ?? []
        let pair = Pair(real: real, model: model)
        if model <= 7 || known.contains(pair) { return compare(real, model <= 7 ? model : real, place) }
        // Both counters advance by the same steps.
        if let first = known.first { compare(real &- first.real, model &- first.model, place) }
        known.append(pair)
        pairs[name] = known
    }

    private mutating func compareCounts(_ real: UInt64?, _ model: UInt64, _ place: String) {
        guard let real, model > 0 else { return compare(real, model, place) }
        if let first = counts { compare(real &- first.real, model &- first.model, place) }
        counts = counts ?? Pair(real: real, model: model)
    }

    private func meaning(_ latches: [SharedLatch]) -> [String] {
        latches.map { latch in
            // Rounded to 100 s, since the clocks differ.
            let age = (wallClock() - latch.latch.closedAt + 50_000) / 100_000
            return "\(latch.digest) \(latch.challenge) \(latch.latch.reason) \(age) \(latch.latch.opensAt != nil)"
        }
        .sorted()
    }

    private mutating func compare<Value: Equatable>(_ real: Value, _ model: Value, _ place: String) {
        if real != model { fail("\(place): \(real), and not \(model)") }
    }

    private mutating func fail(_ words: String) {
        hasFailed = true
        Issue.record("\(words)")
    }
}
