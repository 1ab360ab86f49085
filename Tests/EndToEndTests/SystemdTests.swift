// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("The shipped units under a real systemd")
struct SystemdTests {
    @Test("start by socket, log in, reload, restart without a refused request, and stop")
    func lifeOfAService() async throws {
        try await SystemdScenario(limit: 60).run("life")
    }
}
