// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Proxy
import Testing

@Suite("What happens again and again")
struct RepetitionsTests {
    @Test("a repeated message is logged at once, then once per interval with its count")
    func flood() {
        var repetitions = Repetitions<String>(interval: 1_000)
        #expect(repetitions.happened("a", now: 0) == true)
        #expect((1...999).count { repetitions.happened("a", now: $0) } == 0)
        #expect(repetitions.due(now: 999).isEmpty)
        #expect(repetitions.due(now: 1_000) == [.init(kind: "a", count: 999, seconds: 1)])
        #expect(repetitions.due(now: 5_000).isEmpty)
        // Once more within the interval of that line, and then after it.
        #expect(repetitions.happened("a", now: 1_500) == false)
        #expect(repetitions.due(now: 2_000) == [.init(kind: "a", count: 1, seconds: 1)])
        #expect(repetitions.happened("a", now: 3_001) == true)
    }

    @Test("the counts of repeated messages lose no occurrence")
    func conservation() {
        var generator = SystemRandomNumberGenerator()
        var repetitions = Repetitions<Int>(interval: 100)
        var (now, happened, told) = (Int64(0), 0, 0)
        for _ in 0..<10_000 {
            now += Int64.random(in: 0...20, using: &generator)
            happened += 1
            if repetitions.happened(Int.random(in: 0..<5, using: &generator), now: now) { told += 1 }
            if Int.random(in: 0..<10, using: &generator) == 0 {
                told += repetitions.due(now: now).reduce(0) { $0 + $1.count }
            }
        }
        told += repetitions.due(now: now, all: true).reduce(0) { $0 + $1.count }
        #expect(told == happened)
    }

    @Test("repeated messages are counted by kind, and a removed kind is logged at once")
    func kinds() {
        var repetitions = Repetitions<String>()
        #expect(repetitions.happened("a", now: 0) && repetitions.happened("b", now: 0))
        #expect(repetitions.happened("a", now: 1) == false)
        #expect(repetitions.forget { $0 == "a" } == 1)
        #expect(repetitions.happened("a", now: 2) && !repetitions.happened("b", now: 2))
    }

    @Test("the number of kinds of repeated messages is limited, and old ones are replaced")
    func bound() {
        var repetitions = Repetitions<Int>(interval: 1_000)
        let most = Repetitions<Int>.mostKinds
        #expect((0..<2 * most).count { repetitions.happened($0, now: 0) } == most)
        #expect((0..<2 * most).count { repetitions.happened($0, now: 2_000) } == most)
    }

    @Test("a clock that is set back starts a new interval of repetitions")
    func setBack() {
        var repetitions = Repetitions<String>(interval: 1_000)
        #expect(repetitions.happened("a", now: 1_000_000) == true)
        #expect(repetitions.happened("a", now: 5) == true)
        #expect(repetitions.happened("a", now: 6) == false)
        #expect(repetitions.due(now: 0) == [.init(kind: "a", count: 1, seconds: 0)])
    }
}
