// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import Proxy
import Testing

@Suite("The format that Accept asks for")
struct MetricsFormatTests {
    private static let open = "application/openmetrics-text"

    @Test(
        "a weight in Accept has the grammar of a qvalue, from 0 to 1 with three decimals",
        arguments: [
            ("", MetricsFormat.prometheus), ("\(open)", .openMetrics), ("text/plain", .prometheus),
            ("*/*", .prometheus),
            ("text/plain;q=1, \(open);q=0.999", .prometheus), ("text/plain;q=0.999, \(open);q=1.000", .openMetrics),
            ("text/plain; Q=0.5, \(open);q=0.50", .openMetrics), ("text/plain;q=0.501, \(open);q=0.5", .prometheus),
            ("\(open);q=0", .prometheus), ("\(open);q=0., text/plain;q=0.", .prometheus),
            ("\(open);q=1., text/plain;q=0.9", .openMetrics),
        ])
    func weights(accept: String, format: MetricsFormat) {
        #expect(MetricsFormat(accept: accept) == format)
    }

    @Test(
        "an invalid weight in Accept is no error, and its range is ignored",
        arguments: [
            "1e300", "-1e30", "inf", "-inf", "nan", "NaN", "0x1p99", "1e3", "2", "1.1", "1.001", "0.1234", "00.1", "01",
            "-0",
            "+1", ".5", "0,5", "", " ", "\u{0661}", "9223372036854775808", String(repeating: "9", count: 60_000),
        ])
    func strangeWeights(weight: String) {
        #expect(MetricsFormat(accept: "\(Self.open);q=\(weight)") == .prometheus)
        #expect(MetricsFormat(accept: "\(Self.open);q=\(weight), text/plain;q=0.5") == .prometheus)
    }

    @Test("neither many ranges nor a long non-ASCII range in Accept takes long")
    func long() {
        let many = String(repeating: "a/b,", count: 16_000)
        #expect(MetricsFormat(accept: many + "text/plain") == .prometheus)
        let marks = "text/a" + String(repeating: "\u{300}\u{316}", count: 15_000)
        #expect(MetricsFormat(accept: "\(marks);q=1, text/plain") == .prometheus)
    }
}
