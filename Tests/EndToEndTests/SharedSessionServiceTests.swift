// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

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
