// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("countersign learn, at servers with unusual logins")
struct LearnedSiteTests {
    private func learn(_ path: String, of fake: FakeServer, _ bank: Bank, password: String = "demo") async throws
        -> Command
    {
        try await Command.countersign(
            "learn", "http://127.0.0.1:\(fake.port)\(path)", "--yes",
            environment: ["COUNTERSIGN_UPSTREAM__USERNAME": "ann", "COUNTERSIGN_UPSTREAM__PASSWORD": password],
            in: bank.folder)
    }

    @Test("a login with the name first is learned as two steps, which log in; a wrong password is called wrong")
    func nameFirst() async throws {
        try await withFake(FakeKind(script: "name-first", challenge: "gateway: form")) { bank, fake in
            let learned = try await learn("/app", of: fake, bank)
            #expect(learned.exit == 0, "\(learned)")
            #expect(learned.output.contains("parameters: { password: \"{password}\" }"), "\(learned)")
            #expect(fake.logins == ["ann ok", "ann wrong"], "\(fake.logins)")
            let refused = try await learn("/app", of: fake, bank, password: "not-it")
            #expect(refused.exit == 69 && refused.output.isEmpty, "\(refused)")
        }
    }

    @Test("a session that is bound to the User-Agent of its login is learned, and said to be")
    func bound() async throws {
        let kind = FakeKind(script: "bound-agent", challenge: "gateway: form")
        try await withFake(kind) { bank, fake in
            let learned = try await learn("/app", of: fake, bank)
            #expect(learned.exit == 0 && learned.errors.contains("binds the session to the User-Agent"), "\(learned)")
        }
        try await withFake(kind.with("--loose")) { bank, fake in
            let learned = try await learn("/app", of: fake, bank)
            #expect(learned.exit == 0 && !learned.errors.contains("binds the session"), "\(learned)")
        }
    }
}
