// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// `Tests/Fuzz/grammar --growth` measures the same in a release build, and what a byte costs.
@Suite("The time that readers take", .serialized)
struct GrowthTests {
    @Test(
        "eight times the text takes eight times as long, whatever somebody writes to make it slow",
        arguments: Growth.all)
    func growth(_ growth: Growth) {
        #expect(throws: Never.self, "\(growth.name)") { try growth.check(isTimed: false) }
    }
}
