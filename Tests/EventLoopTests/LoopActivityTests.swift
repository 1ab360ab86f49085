// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import EventLoop

@Suite("The load of a loop")
struct LoopActivityTests {
    private let second: UInt64 = 1_000_000_000

    private func at(_ seconds: Double) -> LoopInstant { LoopInstant(nanoseconds: UInt64(seconds * 1e9)) }

    @Test("LoopActivity adds up turns without the waits between them")
    func busy() {
        var activity = LoopActivity()
        activity.turned(from: at(100), to: at(101))
        activity.turned(from: at(105), to: at(107))
        activity.turned(from: at(109), to: at(108))
        #expect(activity.busy == 3 * second)
        #expect(activity.turns == 3)
    }

    @Test("LoopActivity reports the longest turn for 30 to 60 seconds, however often it is read")
    func longest() {
        var activity = LoopActivity()
        activity.turned(from: at(100), to: at(102))
        for moment in stride(from: 103.0, to: 132, by: 5) {
            #expect(activity.longestTurn(at: at(moment)) == 2 * second)
            activity.turned(from: at(moment), to: at(moment + 0.5))
        }
        activity.turned(from: at(133), to: at(134))
        #expect(activity.longestTurn(at: at(134)) == 2 * second)
        activity.turned(from: at(165), to: at(165.5))
        #expect(activity.longestTurn(at: at(166)) == second)
        #expect(activity.longestTurn(at: at(194)) == second)
        // Idle since: nothing turned that could have told.
        #expect(activity.longestTurn(at: at(250)) == 0)
    }
}
