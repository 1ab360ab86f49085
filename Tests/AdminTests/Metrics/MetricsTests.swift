// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@testable import Admin

extension MetricsReport {
    /// Returns a report of a daemon whose logins have these states, without any exchange.
    static func of(_ states: [SessionState]) -> MetricsReport {
        MetricsReport(
            health: .of(states), proxy: ProxyReading(), logins: LoginReading(), replay: nil,
            process: .now(startedAt: 1_500), reload: ReloadReading(startedAt: 1_500))
    }
}

@Suite("The metrics of the daemon")
struct MetricsReportTests {
    private func lines(_ states: [SessionState], _ format: MetricsFormat = .openMetrics) -> [String] {
        MetricsReport.of(states).text(format).split(separator: "\n").map(String.init)
    }

    @Test("sessions are counted by state, and scopes are not labels")
    func sessions() {
        let lines = lines([.held(until: 130_000), .held(until: 110_000), .loggingIn(waiters: 3), .down])
        let labels = #"upstream="bank",challenge="pin""#
        #expect(lines.contains(#"countersign_sessions{\#(labels),state="held"} 2"#))
        #expect(lines.contains(#"countersign_sessions{\#(labels),state="failing"} 1"#))
        #expect(lines.contains(#"countersign_sessions{\#(labels),state="cold"} 0"#))
        #expect(lines.contains(#"countersign_session_expiry_timestamp_seconds{\#(labels)} 110.000"#))
        #expect(lines.contains(#"countersign_login_waiters{\#(labels)} 3"#))
        #expect(!lines.contains { $0.contains("pay") })
    }

    @Test("a login under way after a failure still counts as failing, for alerts that wait")
    func retrying() {
        let lines = lines([.retrying])
        let labels = #"upstream="bank",challenge="pin""#
        #expect(lines.contains(#"countersign_sessions{\#(labels),state="failing"} 1"#))
        #expect(lines.contains(#"countersign_sessions{\#(labels),state="logging-in"} 0"#))
        #expect(lines.contains(#"countersign_login_waiters{\#(labels)} 2"#))
    }

    @Test("state that is only in memory is counted")
    func unwritten() {
        var report = MetricsReport.of([])
        func value() -> Bool { report.text(.openMetrics).contains("\ncountersign_state_unwritten 1\n") }
        #expect(!value())
        report.health.unwritten = .full
        #expect(value())
    }

    @Test("the expiry of a session is a Unix time, also in the past, and a session without one has no sample")
    func ends() {
        let name = "countersign_session_expiry_timestamp_seconds{"
        #expect(lines([.held(until: 90_250)]).contains { $0.hasPrefix(name) && $0.hasSuffix(" 90.250") })
        #expect(!lines([.held(until: nil), .cold]).contains { $0.hasPrefix(name) })
    }

    @Test("each challenge has samples for its latches, closed or not")
    func latches() {
        let lines = lines([.cold])
        #expect(lines.contains(#"countersign_latches{challenge="pin",reason="rejected"} 1"#))
        #expect(lines.contains(#"countersign_latches{challenge="pin",reason="locked"} 0"#))
    }

    @Test("a refused reload sets successful to 0 and does not change the time of the last success")
    func reloads() {
        var report = MetricsReport.of([])
        func values() -> [String] {
            report.text(.openMetrics).split(separator: "\n").map(String.init)
                .filter { $0.hasPrefix("countersign_config_last_reload_") }
        }
        let (successful, time) = (
            "countersign_config_last_reload_successful", "countersign_config_last_reload_success_timestamp_seconds"
        )
        #expect(values() == ["\(successful) 1", "\(time) 1.500"])
        report.reload.record(refusal: "f:1:1: wrong", now: 2_000)
        #expect(values() == ["\(successful) 0", "\(time) 1.500"])
        report.reload.record(refusal: nil, now: 3_000)
        #expect(values() == ["\(successful) 1", "\(time) 3.000"])
    }

    @Test("the metrics have the readiness, the version, and the resources of the process")
    func process() {
        #expect(lines([]).contains("countersign_ready 1"))
        #expect(lines([.down]).contains("countersign_ready 0"))
        #expect(lines([]).contains(#"countersign_build_info{version="1.2"} 1"#))
        #expect(lines([]).contains("process_start_time_seconds 1.500"))
        let process = ProcessReading.now(startedAt: 0)
        #expect(process.residentBytes > 1_000_000 && process.virtualBytes > process.residentBytes)
        #expect(process.processorNanoseconds > 0)
        #expect(process.openDescriptors ?? 0 > 2)
        #expect(process.mostDescriptors >= UInt64(process.openDescriptors ?? 0))
    }

    @Test("the metrics contain neither a token nor the address of an upstream", arguments: MetricsFormat.allCases)
    func secrets(format: MetricsFormat) {
        let text = MetricsReport.of([.held(until: nil)]).text(format)
        #expect(!text.contains("token-value") && !text.contains("secret.example"))
    }
}

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
