// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import System
import Testing

@testable import Credentials

@Suite("Credential store")
struct CredentialStoreTests {
    private struct Source: CredentialLookup {
        var known: [String: String] = [:]
        var failure: CredentialError?

        func credential(named name: String) throws(CredentialError) -> Credential? {
            if let failure { throw failure }
            return known[name].map { Credential(name: name, fields: ["pin": Secret($0)]) }
        }
    }

    @Test("the first source that knows a credential provides all of its fields")
    func firstWins() async throws {
        let store = CredentialStore(sources: [Source(known: ["a": "1"]), Source(known: ["a": "2", "b": "3"])])
        #expect(try await store.credential(named: "a")?["pin"] == Secret("1"))
        #expect(try await store.credential(named: "b")?["pin"] == Secret("3"))
        #expect(try await store.credential(named: "c")?.name == nil)
    }

    @Test("the advice on a missing credential names its needed fields for each source")
    func advice() {
        let store = CredentialStore(
            sources: [
                EnvironmentSource(environment: [:]), SystemdCredentialsSource(environment: [:]), Source(),
                KeyringSource(path: "/x", passphrase: KeyringPassphrase(environment: [:])),
            ], needed: ["ledger-key": ["username", "key"]])
        #expect(
            store.advice(onMissing: "ledger-key") == """
                Add it: set COUNTERSIGN_LEDGER_KEY__USERNAME and COUNTERSIGN_LEDGER_KEY__KEY in the daemon's environment \
                (source `env`), or pass ledger-key.username and ledger-key.key with LoadCredential= in the unit (source \
                `systemd`), or run `countersign keyring set ledger-key username` and `countersign keyring set ledger-key key`.
                """)
        #expect(store.advice(onMissing: "other").contains("COUNTERSIGN_OTHER__FIELD"))
        #expect(CredentialStore(sources: [Source()]).advice(onMissing: "x") == "Add it to a source of `credentials`.")
    }

    @Test("a failing source ends the lookup, so that no older secret of a later source is used")
    func failureEnds() async {
        let failure = CredentialError(reason: "unreadable")
        let store = CredentialStore(sources: [Source(failure: failure), Source(known: ["a": "2"])])
        await #expect(throws: failure) { try await store.credential(named: "a") }
    }

    @Test("concurrent lookups of credentials each get their own result")
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

    @Test("a credential lookup without a thread to run on fails and asks no source")
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
