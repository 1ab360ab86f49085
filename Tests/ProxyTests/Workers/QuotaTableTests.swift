// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport
import Testing

@testable import Proxy

@Suite("Callers' places shared out")
struct QuotaTableTests {
    /// Enters until the table refuses, at most 10,000 times, and returns the number of entries.
    private func fill(_ table: inout QuotaTable, _ holder: QuotaHolder, at listener: String = "a") -> Int {
        for count in 0..<10_000 where table.enter(holder, at: listener) != nil { return count }
        return 10_000
    }

    @Test("a user gets half of the connections that others leave, and each next user still gets some")
    func shares() {
        var table = QuotaTable(limit: 1024)
        #expect((1...10).map { fill(&table, .user($0)) } == [512, 256, 128, 64, 32, 16, 8, 4, 2, 1])
        #expect(table.enter(.user(1), at: "a") == .share)
        table.leave(.user(10), at: "a")
        #expect(table.enter(.user(99), at: "a") == nil)
    }

    @Test("callers with unknown users share one quota, and root has none")
    func holders() {
        var table = QuotaTable(limit: 8, privileged: [0])
        #expect(fill(&table, .unknown) == 4)
        #expect(fill(&table, .user(0)) == 4)
        #expect(table.enter(.user(7), at: "a") == .full)
        table.leave(.unknown, at: "a")
        #expect(table.enter(.user(7), at: "a") == nil)
    }

    @Test("a user gets one connection even if half of the limit is 0, and without a limit there are no quotas")
    func small() {
        var one = QuotaTable(limit: 1)
        #expect(fill(&one, .user(1)) == 1)
        var open = QuotaTable(limit: nil)
        #expect(fill(&open, .user(1)) == 10_000 && !open.isScarce)
    }

    @Test("each listener has its part of the reserved half of the connections")
    func listeners() {
        var table = QuotaTable(limit: 64, privileged: [0])
        table.listeners = ["a", "b", "c", "d"]
        #expect(fill(&table, .user(0), at: "a") == 40)
        #expect(fill(&table, .user(0), at: "b") == 8)
        #expect(fill(&table, .user(0), at: "gone") == 0)
        #expect(fill(&table, .user(0), at: "c") == 8)
        #expect(fill(&table, .user(0), at: "d") == 8)
        #expect(table.count == 64)
    }

    @Test("a caller replaces a connection of its own user, or of a user with more, only if that admits it")
    func replacing() {
        var table = QuotaTable(limit: 8, privileged: [0])
        table.listeners = ["a", "b"]
        func admits(_ holder: UInt32, at listener: String = "a", for other: UInt32, at its: String = "a") -> Bool {
            table.admits(.user(holder), at: listener, inPlaceOf: .user(other), at: its)
        }
        _ = table.enter(.user(1), at: "a")
        #expect(fill(&table, .user(0)) == 5)
        #expect(table.enter(.user(2), at: "a") == .full)
        #expect(admits(2, for: 0) && admits(1, for: 1) && admits(1, for: 0) && admits(2, for: 1))
        #expect(!admits(0, for: 1))
        // The unused part of "b" stays reserved for "b".
        #expect(table.enter(.user(0), at: "b") == nil)
        #expect(!admits(2, at: "a", for: 0, at: "b"))
        // Its share is used up, so it can only replace its own connections.
        var full = QuotaTable(limit: 8)
        #expect(fill(&full, .user(1)) == 4)
        #expect(full.enter(.user(2), at: "a") == nil)
        #expect(full.enter(.user(1), at: "a") == .share)
        #expect(full.admits(.user(1), at: "a", inPlaceOf: .user(1), at: "a"))
        #expect(!full.admits(.user(1), at: "a", inPlaceOf: .user(2), at: "a"))
    }

    @Test("no user exceeds its quota in random sequences, and `admits` agrees with `enter`")
    func model() {
        var random = SplitMix(state: 7)
        let listeners = ["a", "b", "c"]
        for _ in 0..<200 {
            let limit = Int.random(in: 1...40, using: &random)
            var table = QuotaTable(limit: limit)
            table.listeners = Set(listeners.prefix(Int.random(in: 1...3, using: &random)))
            var taken: [(holder: QuotaHolder, listener: String)] = []
            for _ in 0..<200 {
                let (holder, listener) = (
                    QuotaHolder.user(.random(in: 1...5, using: &random)), listeners.randomElement(using: &random) ?? "a"
                )
                if Bool.random(using: &random), let index = taken.indices.randomElement(using: &random) {
                    let gone = taken.remove(at: index)
                    if table.admits(holder, at: listener, inPlaceOf: gone.holder, at: gone.listener) {
                        table.leave(gone.holder, at: gone.listener)
                        #expect(table.enter(holder, at: listener) == nil)
                        taken.append((holder, listener))
                    } else {
                        table.leave(gone.holder, at: gone.listener)
                    }
                } else if table.enter(holder, at: listener) == nil {
                    taken.append((holder, listener))
                    let own = taken.count { $0.holder == holder }
                    #expect(own - 1 < limit - (taken.count - own))
                }
                #expect(table.count == taken.count && taken.count <= limit)
            }
        }
    }
}
