// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Credentials
import Secrets
import Settings
import System
import Testing

@testable import CountersignDaemon

@Suite("Credential sources of a configuration")
struct CredentialSnapshotTests {
    private struct Nobody: SecretAsker {
        func ask(_ question: String, id: String) throws(AskFailure) -> Secret { Secret("asked") }
    }

    private static func settings(_ file: String) -> CredentialSettings {
        var settings = CredentialSettings.standard
        settings.sources = [.environmentFile(file)]
        return settings
    }

    @Test("a plan has its own sources, before they are in force and after they were replaced")
    func snapshots() async throws {
        let folder = try TemporaryFolder.make("snapshots")
        defer { TemporaryFolder.remove(folder) }
        for name in ["old", "new"] {
            let text = "COUNTERSIGN_PIN__PIN=\(name)\n"
            try FileSystem.write(Array(text.utf8), to: "\(folder)/\(name)", mode: 0o600)
        }
        let sources = CredentialComposition(
            Self.settings("\(folder)/old"), asker: Nobody(), oneTimePasswords: NoOneTimePasswords())
        func pin(_ provider: any CredentialProvider) async throws -> String? {
            try await provider.credential(named: "pin")?["pin"]?.revealText()
        }
        let old = sources.present
        let new = sources.snapshot(of: Self.settings("\(folder)/new"), needed: [:])
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: a }]
            upstreams: { a: { url: "http://127.0.0.1:1/" } }
            challenges: [{ name: k, upstream: a, credential: { by-user: { root: pin } }, inject: { X-Key: "{pin}" } }]
            """
        let (loaded, problems) = Settings.parse(Array(text.utf8), file: "f", environment: [:])
        let settings = try #require(loaded, "\(problems)")
        let plans = try ProxyComposition(settings: settings, material: LoginMaterial(), sources: new.sources)
            .upstreams()
        let everybody = plans.flatMap(\.forEverybody)
        #expect(everybody.count == 2 && everybody.allSatisfy { $0.sources.generation == new.generation })
        #expect(new.generation > old.generation)
        // The moment of a reload in which the workers have the new plan already.
        for plan in everybody { #expect(try await pin(plan.sources.credentials) == "new") }
        #expect(try await pin(sources) == "old")
        sources.replace(by: new)
        // The moment in which a login of the former plan looks its value up.
        #expect(try await pin(sources) == "new")
        #expect(try await pin(old) == "old")
        #expect(sources.present.valueSource(of: "pin")?.name.contains("/new") == true)
        #expect(old.valueSource(of: "pin")?.name.contains("/old") == true)
    }
}
