// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import ChallengeClient
import ChallengeHandling
import Testing

@Suite("What probes are told")
struct HealthDocumentTests {
    private func report(
        _ states: [SessionState] = [.cold], check: CheckReading.State? = nil, isAlive: Bool = true
    ) -> HealthReport {
        var report = HealthReport.of(states)
        report.isAlive = isAlive
        if let check { report.checks["ledger"] = CheckReading(check, since: 0) }
        return report
    }

    private func json(_ document: HealthDocument) -> JSONValue { .object(document.json) }

    @Test("a health document names each upstream and each challenge with its state")
    func states() {
        let document = json(HealthDocument(.ready, of: report([.held(until: nil)], check: .up)))
        #expect(document["status"] == "ready")
        #expect(document["reasons"] == [])
        #expect(
            document["checks"] == [
                "listeners": "accepting", "bank": "unchecked", "bank/pin": "held", "ledger": "up",
            ])
        #expect(document["excluded"] == nil && document["warnings"] == nil)
    }

    @Test("a failed check of an upstream is a reason against readiness; one that has not run is not")
    func checks() {
        let down = HealthDocument(.ready, of: report(check: .down("it answered 503 instead of 200")))
        #expect(!down.isWell)
        #expect(down.reasons == ["ledger: its check failed: it answered 503 instead of 200"])
        #expect(HealthDocument(.ready, of: report(check: .unknown("not checked yet"))).isWell)
    }

    @Test("/livez checks the loops, /readyz the serving, and /healthz both")
    func questions() {
        let stuck = report([.down], isAlive: false)
        #expect(json(HealthDocument(.alive, of: report([.down])))["status"] == "alive")
        #expect(json(HealthDocument(.alive, of: stuck))["status"] == "not alive")
        #expect(HealthDocument(.ready, of: stuck).reasons.count == 1)
        #expect(json(HealthDocument(.healthy, of: stuck))["status"] == "not healthy")
        #expect(HealthDocument(.healthy, of: stuck).reasons.count == 2)
        #expect(json(HealthDocument(.healthy, of: report()))["status"] == "healthy")
    }

    @Test("of a login with several scopes, a failing one is shown first, then a held one, then a cold one")
    func scopes() {
        let failing = HealthDocument(.ready, of: report([.held(until: nil), .down, .cold]))
        #expect(!failing.isWell && json(failing)["checks"]?["bank/pin"] == "failing")
        let held = HealthDocument(.ready, of: report([.cold, .held(until: nil)]))
        #expect(json(held)["checks"]?["bank/pin"] == "held")
    }

    @Test(
        "a login is excluded from readiness by its name, its challenge's, or its upstream's",
        arguments: ["bank/pin", "pin", "bank"])
    func excluded(name: String) {
        let document = HealthDocument(.ready, of: report([.down]), excluding: [name])
        #expect(document.isWell)
        #expect(json(document)["checks"]?["bank/pin"] == nil)
        guard case .array(let excluded)? = json(document)["excluded"] else {
            Issue.record("nothing is excluded")
            return
        }
        #expect(excluded.contains("bank/pin"))
        #expect(excluded.contains("bank") == (name == "bank"))
    }

    @Test(
        "an unknown name in `exclude` is a warning and excludes nothing", arguments: ["nothing", "", "workers", "Bank"])
    func unknown(name: String) {
        let document = HealthDocument(.ready, of: report([.down]), excluding: [name])
        #expect(!document.isWell)
        guard case .array(let warnings)? = json(document)["warnings"] else {
            Issue.record("no warning")
            return
        }
        #expect(warnings.first?.stringValue?.contains("the checks are listeners, bank, bank/pin, ledger") == true)
    }
}
