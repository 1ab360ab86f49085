// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Acceptance table")
struct AcceptanceTableTests {
    private func key(_ challenge: String = "corp") -> LatchKey {
        LatchKey(origin: Origin(scheme: .https, host: "a.example"), challenge: challenge, credential: "ann")
    }

    @Test("an acceptance is for one value and challenge, keeps the last path, and ends when the value is rejected")
    func marks() {
        var table = AcceptanceTable()
        table.accept(key(), digest: [1], Acceptance(path: "/a", at: 1))
        #expect(table.acceptance(key(), digest: [2]) == nil && table.acceptance(key("other"), digest: [1]) == nil)
        table.accept(key(), digest: [1], Acceptance(path: nil, at: 2))
        #expect(table.acceptance(key(), digest: [1]) == Acceptance(path: "/a", at: 2))
        table.accept(key(), digest: [1], Acceptance(path: "/b", at: 3))
        #expect(table.acceptance(key(), digest: [1])?.path == "/b" && table.count == 1)
        table.remove(key(), digest: [1])
        #expect(table.acceptance(key(), digest: [1]) == nil)
    }

    @Test("the last four addresses of a value are kept, newest first, and those that had not asked go first")
    func addresses() {
        var table = AcceptanceTable()
        func paths() -> [String] { table.acceptance(key(), digest: [1])?.addresses.map(\.path) ?? [] }
        for path in ["/a", "/b", "/c"] { table.accept(key(), digest: [1], Acceptance(path: path, at: 1)) }
        table.accept(key(), digest: [1], Acceptance(path: "/open", at: 2, wasAsked: false))
        #expect(paths() == ["/open", "/c", "/b", "/a"])
        #expect(table.acceptance(key(), digest: [1])?.wasAsked == true)
        // A caller cannot push out the addresses that prove something.
        for number in 0..<9 {
            table.accept(key(), digest: [1], Acceptance(path: "/open/\(number)", at: 3, wasAsked: false))
        }
        #expect(paths().suffix(3) == ["/c", "/b", "/a"])
        table.accept(key(), digest: [1], Acceptance(path: "/a", at: 4, wasAsked: false))
        #expect(paths().first == "/a" && table.acceptance(key(), digest: [1])?.addresses.first?.wasAsked == true)
        for path in ["/d", "/e"] { table.accept(key(), digest: [1], Acceptance(path: path, at: 5)) }
        #expect(paths() == ["/e", "/d", "/a", "/c"])
    }

    @Test("a record of an earlier version is read as one address, and has no addresses beyond the limit")
    func earlierVersion() {
        let head = #"{"version":1,"accepted":[{"scheme":"https","host":"a.example","port":443,"#
        let name = #""challenge":"corp","credential":"ann","#
        let mark = head + name + #""digest":"01","at":7,"path":"/a","unasked":1}]}"#
        let table = AcceptanceTable(parsing: Array(mark.utf8))
        var written = AcceptanceTable()
        written.accept(key(), digest: [1], Acceptance(path: "/a", at: 7, wasAsked: false))
        #expect(table == written)
        let many = (0..<9).map { #"{"path":"/\#($0)"}"# }.joined(separator: ",")
        let long = head + name + #""digest":"01","at":7,"addresses":[\#(many)]}]}"#
        let read = AcceptanceTable(parsing: Array(long.utf8))?.acceptance(key(), digest: [1])
        #expect(read?.addresses.map(\.path) == ["/0", "/1", "/2", "/3"] && read?.wasAsked == true)
    }

    @Test("an acceptance table is restored unchanged, and invalid bytes or another version give none")
    func bytes() {
        var table = AcceptanceTable()
        table.accept(key(), digest: [1, 255], Acceptance(path: "/a b/\u{e4}", at: 1))
        table.accept(key(), digest: [1, 255], Acceptance(path: "/b", at: 1, wasAsked: false))
        table.accept(key("other"), digest: [2], Acceptance(path: nil, at: 2))
        table.accept(key("third"), digest: [2], Acceptance(path: "/", at: 2, wasAsked: false))
        #expect(AcceptanceTable(parsing: table.serialized()) == table)
        for text in ["", "x", "{}", #"{"version":2,"accepted":[]}"#, #"{"version":1,"accepted":[{"at":1}]}"#] {
            #expect(AcceptanceTable(parsing: Array(text.utf8)) == nil, "\(text)")
        }
        // A part that cannot be read does not count as absent.
        let mark = String(decoding: table.serialized(), as: UTF8.self)
        for (known, other) in [(#""path""#, #""p""#), (#""addresses":[{"#, #""form":{},"addresses":[{"#)] {
            let changed = mark.replacing(known, with: other, maxReplacements: 1)
            #expect(changed != mark && AcceptanceTable(parsing: Array(changed.utf8)) == nil, "\(changed)")
        }
    }

    @Test("used steps are restored unchanged, and invalid bytes give none")
    func usedCodes() {
        let codes = UsedCodes(ends: ["seed": 1_700_000_030_000, "other": 1])
        #expect(UsedCodes(parsing: codes.serialized()) == codes)
        #expect(UsedCodes(parsing: UsedCodes().serialized()) == UsedCodes())
        for text in ["", "x", "[]", #"{"seed":"x"}"#, #"{"seed":1,"other":{}}"#, #"{"seed":1"#] {
            #expect(UsedCodes(parsing: Array(text.utf8)) == nil, "\(text)")
        }
    }

    @Test("acceptances are limited: the oldest per key, the oldest of all, and long paths are dropped")
    func bounds() {
        var table = AcceptanceTable()
        for number in 0..<40 { table.accept(key(), digest: [UInt8(number)], Acceptance(path: "/", at: 0)) }
        #expect(table.count == AcceptanceTable.limitPerKey)
        #expect(table.acceptance(key(), digest: [39]) != nil && table.acceptance(key(), digest: [0]) == nil)
        for number in 0..<2_000 { table.accept(key("\(number)"), digest: [0], Acceptance(path: "/", at: 0)) }
        #expect(table.count == AcceptanceTable.limit)
        #expect(Acceptance(path: String(repeating: "x", count: 1_025), at: 0).path == nil)
    }

    @Test("merging acceptance tables keeps both, and the own acceptance if both have one")
    func merge() {
        var own = AcceptanceTable()
        own.accept(key(), digest: [1], Acceptance(path: "/own", at: 1))
        var other = AcceptanceTable()
        other.accept(key(), digest: [1], Acceptance(path: "/other", at: 2))
        other.accept(key("other"), digest: [1], Acceptance(path: "/more", at: 2))
        own.merge(other)
        #expect(own.acceptance(key(), digest: [1])?.path == "/own")
        #expect(own.acceptance(key("other"), digest: [1])?.path == "/more" && own.count == 2)
    }
}

@Suite("Resource refusals")
struct ResourceRefusalsTests {
    private let memory = Memory()

    /// Reference to refusals, since `#expect` cannot call a mutating function.
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
        // Repeated requests do not extend the time.
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
