// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import Testing

@testable import Credentials

@Suite("The sources together")
struct CredentialStoreTests {
    private struct Source: CredentialLookup {
        var known: [String: String] = [:]
        var failure: CredentialError?

        func credential(named name: String) throws(CredentialError) -> Credential? {
            if let failure { throw failure }
            return known[name].map { Credential(name: name, fields: ["pin": Secret($0)]) }
        }
    }

    @Test("the first that knows the name wins")
    func firstWins() async throws {
        let store = CredentialStore(sources: [Source(known: ["a": "1"]), Source(known: ["a": "2", "b": "3"])])
        #expect(try await store.credential(named: "a")?["pin"] == Secret("1"))
        #expect(try await store.credential(named: "b")?["pin"] == Secret("3"))
        #expect(try await store.credential(named: "c")?.name == nil)
    }

    @Test("what no source knows is added by the way of each, with the fields that are needed")
    func advice() {
        let store = CredentialStore(
            sources: [
                EnvironmentSource(environment: [:]), SystemdCredentialsSource(environment: [:]), Source(),
                KeyringSource(path: "/x", passphrase: KeyringPassphrase(environment: [:])),
            ], needed: ["ledger-key": ["username", "key"]])
        #expect(
            store.advice(onMissing: "ledger-key") == """
                Add it: set COUNTERSIGN_LEDGER_KEY__USERNAME and COUNTERSIGN_LEDGER_KEY__KEY in the daemon's environment \
                (source `env`), or pass ledger-key.username and ledger-key.key by LoadCredential= of the unit (source \
                `systemd`), or run `countersign keyring set ledger-key username` and `countersign keyring set ledger-key key`.
                """)
        #expect(store.advice(onMissing: "other").contains("COUNTERSIGN_OTHER__FIELD"))
        #expect(CredentialStore(sources: [Source()]).advice(onMissing: "x") == "Add it to a source of `credentials`.")
    }

    @Test("a source that fails ends the search, lest a later one's older secret be used")
    func failureEnds() async {
        let failure = CredentialError(reason: "unreadable")
        let store = CredentialStore(sources: [Source(failure: failure), Source(known: ["a": "2"])])
        await #expect(throws: failure) { try await store.credential(named: "a") }
    }

    @Test("many look-ups at once each get their own answer")
    func concurrent() async throws {
        let known = Dictionary(uniqueKeysWithValues: (0..<64).map { ("n\($0)", "\($0)") })
        let store = CredentialStore(sources: [Source(known: known)])
        try await withThrowingTaskGroup { group in
            for (name, value) in known {
                group.addTask {
                    let found = try await store.credential(named: name)
                    #expect(found?["pin"] == Secret(value))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("a look-up for which no thread can be started is an error, and runs nowhere")
    func noThread() async {
        let failing: ThreadStart = { (_: @escaping @Sendable () -> Void) throws(ThreadError) in
            throw ThreadError(code: 11)
        }
        let looked = Mutex(0)
        let store = CredentialStore(sources: [Counting(looked: { looked.withLock { $0 += 1 } })], onThread: failing)
        let error = await #expect(throws: CredentialError.self) { try await store.credential(named: "a") }
        #expect(error?.reason.contains("no thread could be started") == true && error?.isAbsent == false)
        await #expect(throws: CredentialError.self) { try await store.watched(named: "a") }
        #expect(looked.withLock { $0 } == 0)
    }

    private struct Counting: CredentialLookup {
        let looked: @Sendable () -> Void

        func credential(named name: String) throws(CredentialError) -> Credential? {
            looked()
            return nil
        }
    }
}
