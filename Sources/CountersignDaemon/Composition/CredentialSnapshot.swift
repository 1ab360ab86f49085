// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Synchronization

/// The credential sources of one configuration, and where its values came from. Logins of that configuration ask nothing else.
final class CredentialSnapshot: CredentialProvider {
    /// Number of the configuration.
    let generation: UInt64
    private let store: CredentialStore
    /// Sources that gave the last value of each credential.
    private let valueSources = Mutex<[String: AnsweringSource]>([:])

    init(_ store: CredentialStore, generation: UInt64) { (self.store, self.generation) = (store, generation) }

    /// The sources, for the plans of upstreams.
    var sources: PlanSources { PlanSources(self, generation: generation) }

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        let credential = try await store.credential(named: name)
        note(credential, named: name)
        return credential
    }

    func advice(onMissing name: String) -> String { store.advice(onMissing: name) }

    /// Returns the source that gave the last value of a credential; nil if it was not looked up yet.
    func valueSource(of name: String) -> AnsweringSource? { valueSources.withLock { $0[name] } }

    private func note(_ credential: Credential?, named name: String) {
        valueSources.withLock { $0[name] = credential?.source }
    }

    /// States of the files that credentials are read from.
    var files: FileStates { store.files }

    /// Returns the credential's present value if a lookup without a prompt can find it.
    func watched(named name: String) async throws(CredentialError) -> WatchedCredential {
        let found = try await store.watched(named: name)
        if case .known(let credential) = found { note(credential, named: name) }
        return found
    }

    /// Returns the credential's present value if a lookup without a prompt can find it, also by a helper.
    func unprompted(named name: String) async throws(CredentialError) -> WatchedCredential {
        let found = try await store.unprompted(named: name)
        if case .known(let credential) = found { note(credential, named: name) }
        return found
    }
}
