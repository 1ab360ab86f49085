// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Resource refusals")
struct ResourceRefusalsTests {
    private let memory = Memory()

    /// Refusals that an expectation may ask, which notes that it was asked.
    private final class Memory {
        private var refusals = ResourceRefusals()

        func passes(_ place: ResourceKey, generation: UInt64, now: Int64) -> Bool {
            refusals.passesChallenge(at: place, generation: generation, now: now)
        }

        func recordLogin(after use: RefusedUse, now: Int64) { refusals.recordLogin(after: use, now: now) }
        func recordRefusal(_ use: RefusedUse, now: Int64) { refusals.recordRefusal(use, now: now) }
        func forget(_ place: ResourceKey) { refusals.removeRefusals(at: place) }
    }

    private func place(_ path: String = "/a", _ scope: String = "") -> ResourceKey {
        let origin = Origin(scheme: .https, host: "bank.example")
        return ResourceKey(
            resource: "GET \(path)",
            session: SessionKey(origin: origin, challenge: "bank", credential: "pin", scope: scope))
    }

    private func use(_ generation: UInt64, _ path: String = "/a") -> RefusedUse {
        RefusedUse(key: place(path), generation: generation)
    }

    private func at(_ seconds: Int64) -> Int64 { 1_795_276_800_000 + seconds * 1_000 }

    @Test("a refusal is passed on for thirty seconds at its route, with that session, a later one, or none")
    func span() {
        memory.recordRefusal(use(3), now: at(0))
        for generation in [0, 3, 4, 900] as [UInt64] {
            #expect(memory.passes(place(), generation: generation, now: at(29)))
            #expect(!memory.passes(place(), generation: generation, now: at(30)))
        }
        #expect(!memory.passes(place(), generation: 2, now: at(1)))
        #expect(!memory.passes(place("/b"), generation: 3, now: at(1)))
        #expect(!memory.passes(place("/a", "more"), generation: 3, now: at(1)))
    }

    @Test(
        "a second session refused at a route leads to no third login, and a request without a session waits for the second"
    )
    func secondLogin() {
        memory.recordLogin(after: use(3), now: at(0))
        #expect(!memory.passes(place(), generation: 3, now: at(1)))
        #expect(!memory.passes(place(), generation: 0, now: at(1)))
        #expect(memory.passes(place(), generation: 4, now: at(1)))
        #expect(memory.passes(place(), generation: 0, now: at(1)))
        // Being asked for again and again does not make the time longer.
        #expect(memory.passes(place(), generation: 4, now: at(29)))
        #expect(!memory.passes(place(), generation: 4, now: at(30)))
    }

    @Test("a route at which a session is accepted again forgets its refusals")
    func forgotten() {
        memory.recordRefusal(use(3), now: at(0))
        memory.forget(place())
        #expect(!memory.passes(place(), generation: 3, now: at(1)))
    }

    @Test("a route that was removed and refused again is as recent as its last refusal")
    func refusedAgain() {
        memory.recordRefusal(use(1), now: at(0))
        memory.forget(place())
        for number in 0..<500 { memory.recordRefusal(use(1, "/\(number)"), now: at(0)) }
        memory.recordRefusal(use(1), now: at(0))
        for number in 500..<1_000 { memory.recordRefusal(use(1, "/\(number)"), now: at(0)) }
        #expect(memory.passes(place(), generation: 1, now: at(1)))
        #expect(!memory.passes(place("/0"), generation: 1, now: at(1)))
    }

    @Test("a clock that is set back ends a refusal at a route")
    func setBack() {
        memory.recordRefusal(use(3), now: at(3_600))
        #expect(!memory.passes(place(), generation: 3, now: at(0)))
    }

    @Test("of many refusals, the newest thousand are kept")
    func bounded() {
        for number in 0..<5_000 { memory.recordRefusal(use(1, "/\(number)"), now: at(0)) }
        let kept = (0..<5_000).filter { memory.passes(place("/\($0)"), generation: 1, now: at(1)) }
        #expect(kept.count <= 1_000 && kept.count >= 700)
        #expect(kept == Array(5_000 - kept.count..<5_000))
    }
}
