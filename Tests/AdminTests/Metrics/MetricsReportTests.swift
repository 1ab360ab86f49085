// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

extension MetricsReport {
    /// A report of a daemon whose logins have these states, without any exchange.
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
