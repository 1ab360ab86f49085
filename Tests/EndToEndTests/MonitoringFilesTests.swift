// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("The dashboard and the alert rules that are shipped")
struct MonitoringFilesTests {
    private let folder = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined() + "/config/monitoring"

    private func text(_ name: String) -> String { String(decoding: readFile("\(folder)/\(name)"), as: UTF8.self) }

    /// Returns the metrics that a text names.
    private func named(_ text: String) -> Set<String> {
        Set(
            text.split { !($0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "_") }.map(String.init)
                .filter { $0.hasPrefix("countersign_") || $0.hasPrefix("process_") })
    }

    @Test("each metric that they name is one of the running daemon's, and none of those is left out of the dashboard")
    func metrics() async throws {
        var configuration = BankConfiguration()
        configuration.bank = ["check: { path: /balance, every: 1s }"]
        // A session store that is not there is counted, too.
        configuration.more = ["sessions: { store: redis+unix:///nonexistent/session store, key: shared, spread: 1ms }"]
        configuration.environment["COUNTERSIGN_SHARED__KEY"] = String(repeating: "k", count: 44)
        try await withBank(configuration) { bank in
            #expect(try await bank.daemon.waitForLog("upstream check passed"))
            // The checks log in: a request is to meet a challenge, too, before they do.
            var tries = 0
            while tries < 100, try await bank.metrics().sum("challenges_total") == 0 {
                tries += 1
                bank.upstream.mobileFirst.revokeTokens()
                try await bank.expect("/balance", status: 200)
            }
            // Only the metric of dropped sessions has no sample yet.
            let metrics = try await bank.metrics()
            let names = metrics.names.union(["countersign_logouts_total"])
            #expect(metrics.families.contains("countersign_logouts"))
            let (dashboard, alerts) = (named(text("grafana-dashboard.json")), named(text("prometheus-alerts.yaml")))
            #expect(dashboard.count > 35 && alerts.count > 10)
            #expect(dashboard.subtracting(names) == [])
            #expect(alerts.subtracting(names) == [])
            let shown = names.filter { !$0.hasSuffix("_sum") && !$0.hasSuffix("_count") }
            #expect(shown.subtracting(dashboard) == [])
        }
    }

    @Test("the dashboard is JSON, each of its panels asks something, and each has a place of its own")
    func dashboard() throws {
        let dashboard = try #require(JSON(parsing: readFile("\(folder)/grafana-dashboard.json")))
        guard case .array(let panels)? = dashboard["panels"] else {
            Issue.record("no panels")
            return
        }
        var places: Set<String> = []
        for panel in panels {
            let place = panel["gridPos"]
            let isNew = places.insert("\(place?["x"]?.text ?? "") \(place?["y"]?.text ?? "")").inserted
            #expect(isNew)
            guard panel["type"]?.string != "row" else { continue }
            guard case .array(let targets)? = panel["targets"], !targets.isEmpty else {
                Issue.record("\(panel["title"]?.text ?? "?") asks nothing")
                continue
            }
            for target in targets { #expect(target["expr"]?.string?.isEmpty == false) }
        }
        #expect(panels.count > 20)
    }

    @Test("each alert names the instance, and that of a latch waits a minute for a value that was corrected at once")
    func alerts() {
        let alerts = text("prometheus-alerts.yaml").split(separator: "- alert: ").dropFirst()
        for alert in alerts {
            let summary = alert.split(separator: "\n").first { $0.contains("summary: ") }
            #expect(summary?.contains("{{ $labels.instance }}") == true, "\(alert.prefix(40))")
        }
        #expect(alerts.count > 15)
        #expect(alerts.first { $0.hasPrefix("CountersignLatchClosed") }?.contains("\n        for: 1m\n") == true)
    }

    @Test("promtool takes the alert rules, and every question of the dashboard")
    func promtool() async throws {
        guard unsafe access("/usr/bin/promtool", X_OK) == 0 else { return }
        let working = try Folder()
        let rules = try await Command.run(
            ["/usr/bin/promtool", "check", "rules", "\(folder)/prometheus-alerts.yaml"], in: working)
        #expect(rules.exit == 0, "\(rules.output)\(rules.errors)")

        // As rules they are read by Prometheus' parser; Grafana's variables are filled in before.
        let dashboard = try #require(JSON(parsing: readFile("\(folder)/grafana-dashboard.json")))
        guard case .array(let panels)? = dashboard["panels"] else { return }
        var questions: [String] = []
        for panel in panels {
            guard case .array(let targets)? = panel["targets"] else { continue }
            questions += targets.compactMap { $0["expr"]?.string }
        }
        #expect(questions.count > 40)
        var text = "groups:\n  - name: dashboard\n    rules:\n"
        for (number, question) in questions.enumerated() {
            let filled = question.replacing("$__rate_interval", with: "1m").replacing("$instance", with: ".*")
                .replacing("$upstream", with: ".*")
            text += "      - record: panel:\(number)\n        expr: '\(filled.replacing("'", with: "''"))'\n"
        }
        let file = working.write(text, to: "dashboard.yaml")
        let checked = try await Command.run(["/usr/bin/promtool", "check", "rules", file], in: working)
        #expect(checked.exit == 0, "\(checked.output)\(checked.errors)")
    }
}
