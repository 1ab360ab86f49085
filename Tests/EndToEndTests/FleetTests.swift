// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("Three hosts that share sessions through a real Redis")
struct FleetTests {
    @Test(
        "log in once in all, cold and with a hundred requests each at once, and hold the session through ten seconds without the engine"
    )
    func oneLogin() async throws {
        try await FleetScenario().run("one-login")
    }

    @Test("lose the one that logs in, and log in once more within the life of its lease")
    func leaderKilled() async throws {
        try await FleetScenario().run("leader-killed")
    }

    @Test("send a rejected credential once, and let it be sent again when one of them is told so")
    func rejected() async throws {
        var scenario = FleetScenario()
        scenario.pins = ["9999", "9999", "9999"]
        try await scenario.run("rejected")
    }

    @Test("end a session for all when one of them is told so, and win it once again")
    func dropped() async throws {
        try await FleetScenario().run("dropped")
    }

    @Test("a host without the fleet's key does not start, and says how to make one")
    func noKey() async throws {
        try await FleetScenario().run("no-key")
    }

    @Test("log in each for itself where the engine was never there, and share from then on")
    func engineLate() async throws {
        try await FleetScenario().run("engine-late")
    }
}
