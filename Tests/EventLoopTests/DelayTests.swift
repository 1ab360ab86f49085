// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Testing

@Suite("Delays in the loop's unit")
struct DelayTests {
    @Test(
        "a LoopDelay leads to the same instant as its Duration",
        arguments: [
            Duration.zero, .nanoseconds(1), .milliseconds(1500), .seconds(300), .seconds(-5), .seconds(Int64.max),
        ])
    func same(duration: Duration) {
        let instant = LoopInstant(nanoseconds: 12_345)
        #expect(instant + LoopDelay(duration) == instant + duration)
    }
}
