// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("LTPA tokens of Liberty and WebSphere, by a faithful fake")
struct LibertyServerTests {
    @Test("outlive a restart of the server, which no caller notices and no login follows")
    func restart() async throws {
        try await withFake(.liberty) { bank, fake in
            try await fake.expectPostsOnce(through: bank, at: "/app/before")
            try await fake.restart()
            try await fake.expectPostsOnce(through: bank, at: "/app/after")
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("end after their time, which no cookie tells and no caller notices")
    func life() async throws {
        try await withFake(.liberty.with("--life", "2")) { bank, fake in
            let hasEnded = try await goingOn(until: { fake.logins.count >= 2 }) { _ in
                let answer = try await bank.expect("/app/", status: 200)
                #expect(answer.json?["principal"]?.string == "ann")
            }
            #expect(hasEnded && fake.logins.count < fake.arrived.count)
        }
    }
}
