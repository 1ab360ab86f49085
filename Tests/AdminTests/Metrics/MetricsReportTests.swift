// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

extension MetricsReport {
    /// A report of a daemon whose logins stand like that, without any exchange.
    static func of(_ standings: [SessionStanding]) -> MetricsReport {
        MetricsReport(
            health: .of(standings), proxy: ProxyReading(), logins: LoginReading(), replay: nil,
            process: .now(startedAt: 1_500))
    }
}

@Suite("The metrics of the daemon")
struct MetricsReportTests {
    private func lines(_ standings: [SessionStanding], _ format: MetricsFormat = .openMetrics) -> [String] {
        MetricsReport.of(standings).text(format).split(separator: "\n").map(String.init)
    }

    @Test("the sessions are counted by state, and scopes are no labels")
    func sessions() {
        let lines = lines([.held(until: 130_000), .held(until: 110_000), .winning(waiters: 3), .down])
        let labels = #"upstream="bank",challenge="pin""#
        #expect(lines.contains(#"countersign_sessions{\#(labels),state="held"} 2"#))
        #expect(lines.contains(#"countersign_sessions{\#(labels),state="failing"} 1"#))
        #expect(lines.contains(#"countersign_sessions{\#(labels),state="cold"} 0"#))
        #expect(lines.contains(#"countersign_session_expires_in_seconds{\#(labels)} 10.0"#))
        #expect(lines.contains(#"countersign_login_waiters{\#(labels)} 3"#))
        #expect(!lines.contains { $0.contains("pay") })
    }

    @Test("a session that has ended has no seconds left, and one without an end none at all")
    func ends() {
        let name = "countersign_session_expires_in_seconds{"
        #expect(lines([.held(until: 90_000)]).contains { $0.hasPrefix(name) && $0.hasSuffix(" 0.0") })
        #expect(!lines([.held(until: nil), .cold]).contains { $0.hasPrefix(name) })
    }

    @Test("each challenge has its latches, closed or not")
    func latches() {
        let lines = lines([.cold])
        #expect(lines.contains(#"countersign_latches{challenge="pin",reason="rejected"} 1"#))
        #expect(lines.contains(#"countersign_latches{challenge="pin",reason="locked"} 0"#))
    }

    @Test("readiness and version are there, and what the kernel says of this process")
    func process() {
        #expect(lines([]).contains("countersign_ready 1"))
        #expect(lines([.down]).contains("countersign_ready 0"))
        #expect(lines([]).contains(#"countersign_build_info{version="1.2"} 1"#))
        #expect(lines([]).contains("countersign_process_start_time_seconds 1.500"))
        let process = ProcessReading.now(startedAt: 0)
        #expect(process.residentBytes > 1_000_000 && process.virtualBytes > process.residentBytes)
        #expect(process.processorNanoseconds > 0)
        #expect(process.openDescriptors ?? 0 > 2)
        #expect(process.mostDescriptors >= UInt64(process.openDescriptors ?? 0))
    }

    @Test("neither a token nor the address of an upstream is in it", arguments: MetricsFormat.allCases)
    func secrets(format: MetricsFormat) {
        let text = MetricsReport.of([.held(until: nil)]).text(format)
        #expect(!text.contains("token-value") && !text.contains("secret.example"))
    }
}
