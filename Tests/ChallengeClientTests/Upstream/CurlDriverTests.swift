// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Glibc
import Testing

@testable import ChallengeClient

@Suite("The driver of libcurl")
struct CurlDriverTests {
    /// Returns how many of `count` events in one turn are handled.
    private func handled(_ count: Int, _ events: Readiness = .readable, budget: UInt64)
        throws -> UInt64
    {
        let loop = try EventLoop()
        let driver = try CurlDriver(loop: loop, connections: 1, budget: budget)
        var ends: [Int32] = [-1, -1]
        #expect(unsafe pipe(&ends) == 0)
        defer { for end in ends { Glibc.close(end) } }
        loop.turnOnce()
        let before = driver.cycles
        for _ in 0..<count { driver.ready(ends[0], events) }
        let first = driver.cycles - before
        loop.turnOnce()
        let between = driver.cycles
        driver.ready(ends[0], events)
        #expect(driver.cycles == between + 1, "the next turn has time again")
        return first
    }

    @Test("handles sockets in a turn until its time is over, but at least one")
    func budget() throws {
        #expect(try handled(5, budget: 0) == 1)
        #expect(try handled(5, budget: 60_000_000_000) == 5)
    }

    @Test("handles descriptors that the kernel does not watch, which would not be reported again")
    func refused() throws {
        #expect(try handled(5, .refused, budget: 0) == 5)
    }
}
