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

    @Test("an acceptance table is restored unchanged, and invalid bytes give an empty one")
    func bytes() {
        var table = AcceptanceTable()
        table.accept(key(), digest: [1, 255], Acceptance(path: "/a b/\u{e4}", at: 1))
        table.accept(key("other"), digest: [2], Acceptance(path: nil, at: 2))
        #expect(AcceptanceTable(parsing: table.serialized()) == table)
        for text in ["", "x", "{}", #"{"version":2,"accepted":[]}"#, #"{"version":1,"accepted":[{"at":1}]}"#] {
            #expect(AcceptanceTable(parsing: Array(text.utf8)).count == 0)
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
