// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("Three nodes that share sessions through a real Redis")
struct SharedSessionNodeTests {
    @Test(
        "log in once in all, cold and with a hundred requests each at once, and hold the session through ten seconds without the session store"
    )
    func oneLogin() async throws {
        try await NodeScenario().run("one-login")
    }

    @Test("lose the one that logs in, and log in once more within the life of its lease")
    func leaderKilled() async throws {
        try await NodeScenario().run("leader-killed")
    }

    @Test("send a rejected credential once, and let it be sent again when one of them is told so")
    func rejected() async throws {
        var scenario = NodeScenario()
        scenario.pins = ["9999", "9999", "9999"]
        try await scenario.run("rejected")
    }

    @Test("end a session for all when one of them is told so, and win it once again")
    func dropped() async throws {
        try await NodeScenario().run("dropped")
    }

    @Test("a node without the shared key does not start, and says how to make one")
    func noKey() async throws {
        try await NodeScenario().run("no-key")
    }

    @Test("log in each for itself where the session store was never there, and share from then on")
    func storeLate() async throws {
        try await NodeScenario().run("store-late")
    }
}

/// Sharing as the hardened units allow it, with a real Redis, under a real systemd.
@Suite("Services that share a session")
struct SharedSessionServiceTests {
    private static func configuration(listener: String) -> String {
        """
        sessions: { store: "redis://127.0.0.1:6379", key: shared, spread: 1s }
        \(SystemdScenario.bank(listener: listener))
        """
    }

    @Test("use what one of them has won, outlive the session store and give it back what it lost")
    func sharing() async throws {
        var scenario = SystemdScenario()
        scenario.configuration = Self.configuration(listener: "127.0.0.1:8080")
        scenario.files["/etc/countersign/other.yaml"] = Self.configuration(listener: "127.0.0.1:8086")
        scenario.files["/etc/countersign/secrets/shared.key"] = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
        scenario.dropIn = """
            [Service]
            LoadCredential=bank-pin.pin:/etc/countersign/secrets/bank-pin.pin
            LoadCredential=shared.key:/etc/countersign/secrets/shared.key

            """
        try await scenario.run("shared-session")
    }
}

/// A scenario with three nodes in front of the demonstration's upstream. Each is in a network namespace of its own, and
/// they share their sessions through a real Redis.
struct NodeScenario {
    /// The PIN that each node has; the right one is 1234.
    var pins = ["1234", "1234", "1234"]
    /// Further lines of the section `sessions`.
    var sessions: [String] = []
    /// The time limit, in seconds.
    var limit = 90

    /// Runs `Tests/Scenarios/shared-sessions/NAME.sh`, which must end with `step end`. If this machine allows no such namespaces the test is
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
