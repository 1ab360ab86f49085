// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Testing

@Suite("Instants")
struct InstantTests {
    @Test("arithmetic on LoopInstant saturates")
    func saturation() {
        let late = LoopInstant(nanoseconds: .max - 1)
        #expect(late.advanced(byMilliseconds: 1) == .never)
        #expect(late.advanced(byMilliseconds: .max) == .never)
        #expect(late + .seconds(Int64.max) == .never)
        #expect(late.advanced(byMilliseconds: -1) == late)
        #expect(late + .seconds(-1) == late)
        #expect(LoopInstant(nanoseconds: 0) - late == .nanoseconds(-Int64.max))
        #expect(LoopInstant(nanoseconds: 7) + .nanoseconds(5) == LoopInstant(nanoseconds: 12))
        #expect(LoopInstant(nanoseconds: 0) + .milliseconds(2500) == LoopInstant(nanoseconds: 2_500_000_000))
    }

    @Test("the wait until a LoopInstant is rounded up to milliseconds")
    func rounding() {
        let start = LoopInstant(nanoseconds: 1_000)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 1_000)) == 0)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 0)) == 0)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 1_001)) == 1)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 1_001_000)) == 1)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 1_001_001)) == 2)
    }
}
