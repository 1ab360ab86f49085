// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Testing

@testable import Admin

@Suite("Metrics as text")
struct MetricsTextTests {
    private func written(_ format: MetricsFormat, _ body: (inout MetricsText) -> Void) -> [String] {
        var text = MetricsText(format)
        body(&text)
        text.finish()
        return text.text.split(separator: "\n").map(String.init)
    }

    @Test("a counter's family lacks the end of its samples' name in OpenMetrics, and has it in the older format")
    func counter() {
        func counter(_ text: inout MetricsText) {
            text.family("cpu_seconds", .counter, unit: "seconds", "Time.")
            text.sample([("a", "b")], 7)
        }
        #expect(
            written(.openMetrics, counter) == [
                "# TYPE countersign_cpu_seconds counter", "# UNIT countersign_cpu_seconds seconds",
                "# HELP countersign_cpu_seconds Time.", #"countersign_cpu_seconds_total{a="b"} 7"#, "# EOF",
            ])
        #expect(
            written(.prometheus, counter) == [
                "# TYPE countersign_cpu_seconds_total counter", "# HELP countersign_cpu_seconds_total Time.",
                #"countersign_cpu_seconds_total{a="b"} 7"#,
            ])
    }

    @Test("a metric of the process keeps its conventional name, without the prefix of the others")
    func process() {
        let lines = written(.prometheus) { text in
            text.family("process_cpu_seconds", .counter, unit: "seconds", "Time.")
            text.sample(7)
        }
        #expect(lines.first == "# TYPE process_cpu_seconds_total counter")
        #expect(lines.last == "process_cpu_seconds_total 7")
    }

    @Test("an info is a gauge in the older format")
    func info() {
        func info(_ text: inout MetricsText) {
            text.family("build", .info, "Version.")
            text.sample([("version", "1")], 1)
        }
        #expect(written(.openMetrics, info).first == "# TYPE countersign_build info")
        #expect(written(.prometheus, info).first == "# TYPE countersign_build_info gauge")
        #expect(written(.prometheus, info).last == #"countersign_build_info{version="1"} 1"#)
    }

    @Test("a label's value may contain any character and is escaped")
    func escapes() {
        let lines = written(.openMetrics) { text in
            text.family("x", .gauge, #"One \ two"# + "\n\"three\"")
            text.sample([("name", "a\"b\\c\nd\r{}=, é")], 1)
        }
        #expect(lines[1] == #"# HELP countersign_x One \\ two\n\"three\""#)
        #expect(lines[2] == #"countersign_x{name="a\"b\\c\nd"# + "\r" + #"{}=, é"} 1"#)
    }

    @Test("a histogram's buckets include the lower ones, and the last bucket includes all")
    func histogram() {
        var times = LatencyHistogram()
        for time: UInt64 in [1, 65_000, 65_000, 100_000_000_000] { times.add(time) }
        let lines = written(.openMetrics) { text in
            text.family("t_seconds", .histogram, unit: "seconds", "Times.")
            text.histogram([], times)
        }
        #expect(lines.contains(#"countersign_t_seconds_bucket{le="0.000064"} 1"#))
        #expect(lines.contains(#"countersign_t_seconds_bucket{le="0.000128"} 3"#))
        #expect(lines.contains(#"countersign_t_seconds_bucket{le="67.108864"} 3"#))
        #expect(lines.contains(#"countersign_t_seconds_bucket{le="+Inf"} 4"#))
        #expect(lines.contains("countersign_t_seconds_sum 100.000130001"))
        #expect(lines.contains("countersign_t_seconds_count 4"))
    }

    @Test(
        "nanoseconds are written as seconds without an exponent",
        arguments: [(0, "0.0"), (1, "0.000000001"), (1_500_000_000, "1.5"), (2_000_000_000, "2.0")]
            as [(UInt64, String)])
    func seconds(nanoseconds: UInt64, text: String) { #expect(MetricsText.seconds(nanoseconds: nanoseconds) == text) }

    @Test(
        "OpenMetrics is chosen if Accept names it",
        arguments: [
            "application/openmetrics-text", "Application/OpenMetrics-Text; version=1.0.0; charset=utf-8",
            "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "application/*", "application/*;q=0.6, text/plain;q=0.5",
        ])
    func openMetrics(accept: String) { #expect(MetricsFormat(accept: accept) == .openMetrics) }

    @Test(
        "the older format is chosen if Accept does not name OpenMetrics, excludes it, or prefers plain text",
        arguments: [
            "", "*/*", "text/plain;q=0.5, */*;q=0.6", ", ,", "nonsense", "text/plain", "text/plain; version=0.0.4",
            "text/*", "text/plain;q=0.9, application/openmetrics-text;q=0.5",
            "application/openmetrics-text;q=0, */*", "application/openmetrics-text; q=0.000 , text/plain;q=0.1",
            "application/json", "*/*;q=0.1, text/plain", "application/openmetrics-text;q=x, text/plain",
        ])
    func prometheus(accept: String) { #expect(MetricsFormat(accept: accept) == .prometheus) }
}
