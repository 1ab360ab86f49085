// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("The metrics of the running daemon")
struct MetricsTests {
    private static var twoWorkers: BankConfiguration {
        var configuration = BankConfiguration()
        configuration.workers = 2
        configuration.upstreams = ["nowhere:\n  url: http://127.0.0.1:1/"]
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            upstream: bank
            routes:
              - { path: /open/, upstream: server }
              - { path: /nowhere/, upstream: nowhere }
            """
        return configuration
    }

    @Test("count a known traffic as it was: a login, a body sent again, responses and local replies")
    func traffic() async throws {
        try await withBank(Self.twoWorkers) { bank in
            let body = String(repeating: "b", count: 1000)
            try await bank.expect("/echo", "-d", body, status: 200)
            for _ in 0..<4 { try await bank.expect("/balance", status: 200) }
            try await bank.expect("/open/status/404", status: 404)
            for _ in 0..<2 { try await bank.expect("/nowhere/x", code: "upstream-unreachable") }
            try await bank.expect("/balance", "-H", "Host: evil.example", code: "host-not-allowed")

            let metrics = try await bank.metrics()
            let exchanges = "exchanges_total"
            #expect(metrics.values(exchanges, ["upstream": "bank", "status": "200", "local_reply": ""]) == [5])
            #expect(metrics.values(exchanges, ["upstream": "server", "status": "404", "local_reply": ""]) == [1])
            #expect(
                metrics.values(exchanges, ["upstream": "nowhere", "local_reply": "upstream-unreachable"]) == [2])
            #expect(
                metrics.values(exchanges, ["upstream": "", "status": "421", "local_reply": "host-not-allowed"]) == [1])
            #expect(metrics.sum(exchanges) == 9)
            #expect(metrics.values("exchanges_begun_total") == [8])
            #expect(metrics.values("exchanges_running") == [0])
            for histogram in ["exchange_duration_seconds", "exchange_own_seconds"] {
                #expect(metrics.values("\(histogram)_count", ["upstream": "bank"]) == [5])
                #expect(metrics.values("\(histogram)_bucket", ["upstream": "bank", "le": "+Inf"]) == [5])
                #expect(metrics.sum("\(histogram)_sum", ["upstream": "bank"]) > 0)
            }
            // The server asks for a registered client, and then for the scope of the resource; at the second one only for that,
            // which is held already.
            #expect(
                metrics.values("challenges_total", ["upstream": "bank", "challenge": "bank", "outcome": "answered"])
                    == [3])
            #expect(metrics.sum("challenges_total") == 3)
            #expect(
                metrics.values("logins_total", ["challenge": "bank", "kind": "login", "outcome": "succeeded"]) == [2])
            #expect(metrics.sum("logins_total") == 2)
            #expect(metrics.values("login_duration_seconds_count", ["challenge": "bank"]) == [2])
            #expect(metrics.values("sessions", ["upstream": "bank", "state": "held"]) == [2])
            let ends = metrics.values(
                "session_expiry_timestamp_seconds", ["upstream": "bank", "challenge": "bank"]
            ).map { $0 - Double(time(nil)) }
            #expect(ends.count == 1 && ends.allSatisfy { $0 > 0 && $0 <= 3600 }, "\(ends)")
            #expect(metrics.values("login_waiters", ["upstream": "bank"]) == [0])
            #expect(metrics.values("latches", ["challenge": "bank-pin", "reason": "rejected"]) == [0])
            #expect(metrics.values("replayed_bytes_total", ["tier": "memory"]) == [2000])
            #expect(metrics.values("replayed_bytes_total", ["tier": "disk"]) == [0])
        }
    }

    @Test("a weight in Accept that is no number ends nothing: the daemon answers, and its sessions go on")
    func strangeWeights() async throws {
        try await withBank(Self.twoWorkers) { bank in
            try await bank.expect("/balance", status: 200)
            for weight in ["1e300", "-1e30", "inf", "nan", "0x1p999", "2", String(repeating: "9", count: 5000), ""] {
                let answer = try await bank.admin("/metrics", "-H", "Accept: text/plain;q=\(weight)")
                #expect(answer.status == 200, "\(weight)")
            }
            try await bank.expect("/balance", status: 200)
            let metrics = try await bank.metrics()
            #expect(metrics.sum("logins_total") == 2)
        }
    }

    @Test("tell how connections, workers and process stand")
    func daemon() async throws {
        try await withBank(Self.twoWorkers) { bank in
            let connection = try bank.connect()
            _ = await offPool {
                connection.send("GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return connection.response()
            }
            let metrics = try await bank.metrics()
            // The kept one and the one that asks.
            #expect(metrics.values("connections") == [2])
            #expect(metrics.values("connections_accepted_total") == [2])
            #expect(metrics.values("connections_limit") == [1024] && metrics.values("exchanges_limit") == [4096])
            #expect(metrics.values("connections_refused_total") == [0, 0, 0, 0])
            #expect(metrics.values("worker_up") == [1, 1])
            for name in ["worker_lag_seconds", "worker_longest_turn_seconds", "worker_busy_seconds_total"] {
                #expect(metrics.values(name).count == 2 && metrics.values(name).allSatisfy { $0 >= 0 && $0 < 30 })
            }
            let resident = metrics.sum("process_resident_memory_bytes") / 1024
            #expect(abs(resident - Double(try bank.daemon.residentKilobytes)) < 20_000)
            #expect(metrics.sum("process_open_fds") > 5)
            #expect(metrics.sum("process_cpu_seconds_total") > 0)
            #expect(abs(metrics.sum("process_start_time_seconds") - Double(time(nil))) < 120)
            #expect(metrics.values("ready") == [1])
            let version = try await Command.countersign("--version", in: bank.folder).output.split(separator: "\n")[0]
            #expect(metrics.values("build_info", ["version": String(version)]) == [1])
        }
    }

    @Test("show a rejected credential as a closed latch, once, and what callers were told")
    func latch() async throws {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            for _ in 0..<3 { try await bank.expect("/balance", code: "login-latched") }
            let metrics = try await bank.metrics()
            #expect(metrics.values("latches", ["challenge": "bank-pin", "reason": "rejected"]) == [1])
            #expect(metrics.values("latches", ["challenge": "bank-pin", "reason": "locked"]) == [0])
            #expect(metrics.values("logins_total", ["outcome": "login-rejected"]) == [1])
            #expect(metrics.values("logins_total", ["outcome": "login-latched"]) == [3])
            #expect(metrics.values("challenges_total", ["outcome": "failed"]) == [4])
            #expect(metrics.values("exchanges_total", ["status": "502", "local_reply": "login-rejected"]) == [1])
            #expect(metrics.values("exchanges_total", ["status": "503", "local_reply": "login-latched"]) == [3])
            #expect(metrics.values("sessions", ["upstream": "bank", "state": "failing"]) == [1])
            #expect(metrics.values("ready") == [0])
        }
    }

    @Test("never go backwards over a reload, also one that leaves an upstream out")
    func reload() async throws {
        try await withBank(Self.twoWorkers) { bank in
            try await bank.expect("/balance", status: 200)
            try await bank.expect("/nowhere/x", code: "upstream-unreachable")
            let before = try await bank.metrics().counters
            for round in 1...2 {
                bank.configure {
                    $0.upstreams = round == 1 ? [] : ["nowhere:\n  url: http://127.0.0.1:1/"]
                    $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: bank"
                }
                try bank.daemon.child.signal(SIGHUP)
                #expect(try await bank.daemon.waitForLog("reloaded", times: round))
                try await bank.expect("/balance", status: 200)
                let after = try await bank.metrics().counters
                for (name, value) in before { #expect(after[name] ?? -1 >= value, "\(name)") }
            }
        }
    }

    @Test("show whether the last reload took effect, and when the last successful one was")
    func refusedReload() async throws {
        try await withBank(Self.twoWorkers) { bank in
            let started = try await bank.metrics().values("config_last_reload_success_timestamp_seconds")
            bank.configure { $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: nobody" }
            try bank.daemon.child.signal(SIGHUP)
            #expect(try await bank.daemon.waitForLog("reload refused"))
            let refused = try await bank.metrics()
            #expect(refused.values("config_last_reload_successful") == [0])
            #expect(refused.values("config_last_reload_success_timestamp_seconds") == started)
        }
    }

    @Test("come in the format that is asked for, as GET and HEAD have it, and promtool finds nothing to say of them")
    func formats() async throws {
        try await withBank(Self.twoWorkers) { bank in
            try await bank.expect("/balance", status: 200)
            let wanted = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5,*/*;q=0.1"
            let openMetrics = try await bank.admin("/metrics", "-H", wanted)
            #expect(
                openMetrics.field("content-type") == "application/openmetrics-text; version=1.0.0; charset=utf-8")
            #expect(openMetrics.field("cache-control") == "no-store")
            #expect(openMetrics.text.hasSuffix("# EOF\n"))
            let old = try await bank.admin("/metrics")
            #expect(old.field("content-type") == "text/plain; version=0.0.4; charset=utf-8")
            let (one, other) = (
                try await ScrapedMetrics(openMetrics.body, as: "openmetrics", in: bank.folder),
                try await ScrapedMetrics(old.body, as: "prometheus", in: bank.folder)
            )
            #expect(one.names == other.names)
            #expect(
                one.names.allSatisfy { $0.hasPrefix("countersign_") || $0.hasPrefix("process_") }
                    && one.names.count > 30)
            let head = try await bank.admin("/metrics", "-I", "-H", wanted)
            #expect(head.status == 200 && head.field("content-type")?.contains("1.0.0") == true)
            #expect(try await bank.admin("/metrics", "-X", "POST").status == 405)

            guard unsafe access("/usr/bin/promtool", X_OK) == 0 else { return }
            let checked = try await Command.run(
                ["/usr/bin/promtool", "check", "metrics"], input: old.body, in: bank.folder)
            #expect(checked.exit == 0, "\(checked.output)\(checked.errors)")
        }
    }
}

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
