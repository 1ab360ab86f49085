// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// A scenario with three nodes, each in a network namespace of its own, that share their sessions through a real Redis, in front of the
/// demonstration's upstream.
struct NodeScenario {
    /// The PIN that each node has; the right one is 1234.
    var pins = ["1234", "1234", "1234"]
    /// Further lines of the section `sessions`.
    var sessions: [String] = []
    /// The time limit, in seconds.
    var limit = 90

    /// Runs `Tests/Scenarios/shared-sessions/NAME.sh`, which must end with `step end`. Where this machine allows no such namespaces the test is
    /// cancelled.
    func run(_ name: String) async throws {
        let folder = try Folder()
        for (index, pin) in pins.enumerated() {
            let node = "node\(index + 1)"
            folder.makeFolder(node)
            folder.write(configuration, to: "\(node)/countersign.yaml")
            folder.write(
                "COUNTERSIGN_BANK_PIN__PIN=\(pin)\nCOUNTERSIGN_SHARED__KEY=\(String(repeating: "node_key_", count: 5))\n",
                to: "\(node)/environment")
        }
        let run = try await Slots.run {
            try await Repository.script(
                "node-namespaces",
                ["\(pins.count)", "bash", Repository.path(of: "Tests/Scenarios/shared-sessions/\(name).sh")],
                environment: [
                    "COUNTERSIGN": Binary.path, "SCRIPTS": Repository.path(of: "Tests/Scripts"),
                    "NODES": "\(pins.count)",
                ], in: folder)
        }
        if run.exit == 77 { try Test.cancel("\(run.errors)") }
        let logs =
            run.exit == 0
            ? ""
            : pins.indices.map { "node \($0 + 1): \(folder.text(of: "node\($0 + 1)/log"))" }
                .joined(separator: "\n")
        #expect(run.exit == 0, "\(run.output)\(run.errors)\(logs)")
        #expect(run.output.hasSuffix("step: end\n"))
    }

    private var configuration: String {
        """
        listeners:
          - address: 127.0.0.1:8080
            upstream: bank
        upstreams:
          bank:
            url: http://10.9.0.1:8082/mfp/api/adapters/bank/
            plaintext: allow
            mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
        credentials: { sources: [env] }
        sessions:
          store: redis://10.9.0.1:6379
          key: shared
          lease: 5s
          spread: 1s
        \(sessions.map { "  \($0)\n" }.joined())challenges:
          - name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }
        log: { level: debug, format: json }

        """
    }
}
