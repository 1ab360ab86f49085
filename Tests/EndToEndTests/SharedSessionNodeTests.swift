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
