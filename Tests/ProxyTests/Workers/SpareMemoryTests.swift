// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Proxy

@Suite("The memory that connections have released")
struct SpareMemoryTests {
    private var account = SpareMemoryAccount()

    /// Closes connections until `left` are left; returns how often a search became due, none being done meanwhile.
    private mutating func close(from count: Int, to left: Int) -> Int {
        var due = 0
        for count in (left..<count).reversed() where account.connectionClosed(left: count) { due += 1 }
        return due
    }

    @Test("is searched for once if half of the connections have closed, and again after half of the rest")
    mutating func half() {
        #expect(close(from: 2_000, to: 1_001) == 0)
        #expect(account.connectionClosed(left: 1_000) == true)
        #expect(close(from: 1_000, to: 10) == 0, "one search is due already")
        account.memoryIsReturned()
        #expect(close(from: 10, to: 0) == 0, "ten connections are not worth a search")
        #expect(close(from: 500, to: 0) == 1)
    }

    @Test("is not searched for if connections come and go, or are few")
    mutating func steady() {
        for _ in 0..<10_000 {
            let isDue = account.connectionClosed(left: 62)
            #expect(!isDue)
        }
        #expect(close(from: 62, to: 0) == 0)
    }

    @Test("is searched for if some of many connections close with large buffers, not with small ones")
    mutating func large() {
        for left in (1_500..<2_000).reversed() {
            let isDue = account.connectionClosed(left: left, holding: SpareMemoryAccount.large - 1)
            #expect(!isDue)
        }
        let count = SpareMemoryAccount.enough / SpareMemoryAccount.large
        var due = 0
        for _ in 0..<2 * count where account.connectionClosed(left: 1_500, holding: SpareMemoryAccount.large) {
            due += 1
        }
        #expect(due == 1)
    }

    @Test("is searched for once if idle connections have released enough")
    mutating func released() {
        #expect(account.released(SpareMemoryAccount.enough - 1) == false)
        #expect(account.released(1) == true)
        #expect(account.released(SpareMemoryAccount.enough) == false)
        account.memoryIsReturned()
        #expect(account.released(SpareMemoryAccount.enough) == true)
    }
}
