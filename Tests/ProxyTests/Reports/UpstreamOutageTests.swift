// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Proxy

@Suite("An upstream that fails")
struct UpstreamOutageTests {
    @Test("every request fails after three failures, without an answer in between, and for a minute")
    func total() {
        var outage = UpstreamOutage(at: 1_000, reason: "refused")
        outage.failed(at: 2_000, reason: "refused")
        #expect(!outage.isTotal(at: 2_000))
        outage.failed(at: 3_000, reason: "timed out")
        #expect(outage.isTotal(at: 3_000) && outage.isTotal(at: 63_000) && !outage.isTotal(at: 63_001))
        #expect(outage.since == 1_000 && outage.last == 3_000 && outage.failures == 3 && outage.reason == "timed out")
        // The clock was set back.
        #expect(!outage.isTotal(at: 2_999))
        // A request that was under way when it began, and then failures only.
        outage.answered()
        #expect(!outage.isTotal(at: 3_000) && outage.isPartial)
        for time in [Int64(4_000), 5_000] { outage.failed(at: time, reason: "refused") }
        #expect(!outage.isTotal(at: 5_000) && outage.isPartial)
        outage.failed(at: 6_000, reason: "refused")
        #expect(outage.isTotal(at: 6_000) && !outage.isPartial)
    }
}
