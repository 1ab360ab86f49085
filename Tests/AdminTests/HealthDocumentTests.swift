// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import ChallengeClient
import ChallengeHandling
import Testing

@Suite("What probes are told")
struct HealthDocumentTests {
    private func report(
        _ standings: [SessionStanding] = [.cold], check: CheckReading.State? = nil, isAlive: Bool = true
    ) -> HealthReport {
        var report = HealthReport.of(standings)
        report.isAlive = isAlive
        if let check { report.checks["ledger"] = CheckReading(check, since: 0) }
        return report
    }

    private func json(_ document: HealthDocument) -> JSONValue { .object(document.json) }

    @Test("each upstream and each challenge is told with its state")
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

    @Test("a failed check of an upstream is a reason; one that is not known yet is none")
    func checks() {
        let down = HealthDocument(.ready, of: report(check: .down("it answered 503 in place of 200")))
        #expect(!down.isWell)
        #expect(down.reasons == ["ledger: its check failed: it answered 503 in place of 200"])
        #expect(HealthDocument(.ready, of: report(check: .unknown("not asked yet"))).isWell)
    }

    @Test("each question is about its own: the loops, what is served, and both")
    func questions() {
        let stuck = report([.down], isAlive: false)
        #expect(json(HealthDocument(.alive, of: report([.down])))["status"] == "alive")
        #expect(json(HealthDocument(.alive, of: stuck))["status"] == "not alive")
        #expect(HealthDocument(.ready, of: stuck).reasons.count == 1)
        #expect(json(HealthDocument(.healthy, of: stuck))["status"] == "not healthy")
        #expect(HealthDocument(.healthy, of: stuck).reasons.count == 2)
        #expect(json(HealthDocument(.healthy, of: report()))["status"] == "healthy")
    }

    @Test("of a login with several scopes one that fails is told, and one that is held before one that is cold")
    func scopes() {
        let failing = HealthDocument(.ready, of: report([.held(until: nil), .down, .cold]))
        #expect(!failing.isWell && json(failing)["checks"]?["bank/pin"] == "failing")
        let held = HealthDocument(.ready, of: report([.cold, .held(until: nil)]))
        #expect(json(held)["checks"]?["bank/pin"] == "held")
    }

    @Test(
        "a login can be left out by its name, its challenge's, or its upstream's",
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

    @Test("what cannot be left out is said, and changes nothing", arguments: ["nothing", "", "workers", "Bank"])
    func unknown(name: String) {
        let document = HealthDocument(.ready, of: report([.down]), excluding: [name])
        #expect(!document.isWell)
        guard case .array(let warnings)? = json(document)["warnings"] else {
            Issue.record("no warning")
            return
        }
        #expect(warnings.first?.stringValue?.contains("there are listeners, bank, bank/pin, ledger") == true)
    }
}
