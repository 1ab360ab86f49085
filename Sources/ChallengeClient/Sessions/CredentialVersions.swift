// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// The credential values used by logins, as keyed digests.
///
/// Finds sessions established with an outdated value, so that they are replaced before the server refuses them.
package final class CredentialVersions: Sendable {
    /// One value of a credential, with the rising number of its lookup.
    struct ObservedVersion: Sendable, Equatable {
        /// The digest; empty if no source knew the credential.
        var digest: [UInt8]
        var number: UInt64
    }

    private struct State: Sendable {
        /// The values used by the last login of each key whose result is known, by the credential's name.
        var used: [SessionKey: [String: ObservedVersion]] = [:]
        /// The values used by logins since then, whose result is unknown.
        var unanswered: [SessionKey: [String: ObservedVersion]] = [:]
        /// The digests of the values with which the sessions of each key were last established.
        var established: [SessionKey: [String: [UInt8]]] = [:]
        /// The values last seen by the watch.
        var present: [String: ObservedVersion] = [:]
        var lastNumber: UInt64 = 0

        /// Returns true if one of `values` was replaced since. A removed credential does not count.
        func isOutdated(_ values: [String: ObservedVersion]) -> Bool {
            values.contains { name, observed in
                present[name].map { !$0.digest.isEmpty && observed.isOlder(than: $0) } ?? false
            }
        }
    }

    /// The limit of keys: they include scopes named by upstreams.
    private static let limit = 4096

    private let digest: @Sendable (Credential) -> [UInt8]
    private let state = Mutex(State())

    /// Creates an empty table; `digest` distinguishes values and reveals nothing else about them.
    package init(digest: @escaping @Sendable (Credential) -> [UInt8]) {
        self.digest = digest
    }

    /// The names of the credentials that logins have looked up.
    package var names: Set<String> {
        state.withLock { Set($0.used.values.flatMap(\.keys)) }
    }

    /// Returns the number of a lookup that begins now.
    package func beginLookup() -> UInt64 {
        state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    /// Records the value found by the watch in the lookup of that number; `nil` if the credential is gone.
    ///
    /// Returns true if the value differs from one that a login used before.
    @discardableResult
    package func recordLookup(of name: String, as credential: Credential?, number: UInt64) -> Bool {
        let observed = ObservedVersion(digest: credential.map(digest) ?? [], number: number)
        return state.withLock { state in
            if let present = state.present[name], present.number >= number { return false }
            let isChange = state.present.updateValue(observed, forKey: name)?.digest != observed.digest
            return isChange && state.used.values.contains { $0[name].map { $0.isOlder(than: observed) } ?? false }
        }
    }

    /// The keys whose last login used a value that was replaced since.
    ///
    /// A removed credential does not count: a login would have no value.
    package var outdated: Set<SessionKey> {
        state.withLock { state in
            guard !state.present.isEmpty else { return [] }
            let state = state
            return Set(state.used.filter { state.isOutdated($0.value) }.keys)
        }
    }

    /// Returns true if `digest` is of an earlier or removed value of the credential `name`.
    ///
    /// False if the credential was never looked up.
    package func isReplaced(_ digest: [UInt8], of name: String) -> Bool {
        state.withLock { state in
            var last = state.present[name]
            for case let observed? in state.used.values.lazy.map({ $0[name] }) where observed.number > last?.number ?? 0
            {
                last = observed
            }
            return last.map { $0.digest != digest } ?? false
        }
    }

    /// Returns true if the source has another value of `credential` by now.
    func isReplaced(_ credential: Credential) -> Bool { isReplaced(digest(credential), of: credential.name) }

    /// Returns the digests used by the last login that established a session of `key`, by the credential's name.
    package func versions(of key: SessionKey) -> [String: [UInt8]] { state.withLock { $0.established[key] ?? [:] } }

    /// Records the digests of an adopted session, which an earlier process established.
    package func record(_ key: SessionKey, _ versions: [String: [UInt8]]) {
        guard !versions.isEmpty else { return }
        let number = beginLookup()
        store(versions.mapValues { ObservedVersion(digest: $0, number: number) }, for: key, isEstablished: true)
    }

    /// Forgets the values of that key, whose session is no longer held.
    func forget(_ key: SessionKey) {
        state.withLock { state in
            state.used[key] = nil
            state.unanswered[key] = nil
            state.established[key] = nil
        }
    }

    /// Drops the values of the session of that key, which is no longer held, but keeps those of its last login.
    ///
    /// Returns true if one of the login's values was replaced since.
    func forgetSession(of key: SessionKey) -> Bool {
        state.withLock { state in
            state.established[key] = nil
            if let values = state.unanswered.removeValue(forKey: key) { state.used[key] = values }
            return state.used[key].map { state.isOutdated($0) } ?? false
        }
    }

    /// Records the values used by a login. If its result says nothing about them, the held session still belongs to the
    /// earlier values.
    func record(_ key: SessionKey, _ recorder: RecordingProvider, _ result: Result<Session, LoginFailure>) {
        let observations = recorder.observations
        guard !observations.isEmpty else { return }
        switch result {
        case .success: store(observations, for: key, isEstablished: true)
        case .failure(let failure) where failure.isUnknown:
            state.withLock { if $0.used[key] != nil { $0.unanswered[key] = observations } }
        // The session held so far stays, and belongs to an earlier value.
        case .failure: store(observations, for: key, isEstablished: false)
        }
    }

    private func store(_ observations: [String: ObservedVersion], for key: SessionKey, isEstablished: Bool) {
        state.withLock { state in
            if state.used.count >= Self.limit { (state.used, state.unanswered, state.established) = ([:], [:], [:]) }
            state.used[key] = observations
            state.unanswered[key] = nil
            guard isEstablished else { return }
            state.established[key] = observations.mapValues(\.digest).filter { !$0.value.isEmpty }
        }
    }

    /// A credential provider that records the lookups of one login.
    final class RecordingProvider: CredentialProvider {
        private let credentials: any CredentialProvider
        private let versions: CredentialVersions
        private let seen = Mutex<[String: ObservedVersion]>([:])

        init(_ credentials: any CredentialProvider, _ versions: CredentialVersions) {
            self.credentials = credentials
            self.versions = versions
        }

        var observations: [String: ObservedVersion] { seen.withLock { $0 } }

        func credential(named name: String) async throws(CredentialError) -> Credential? {
            let number = versions.beginLookup()
            let found = try await credentials.credential(named: name)
            let observed = ObservedVersion(digest: found.map(versions.digest) ?? [], number: number)
            seen.withLock { $0[name] = observed }
            return found
        }

        func advice(onMissing name: String) -> String { credentials.advice(onMissing: name) }
    }
}

extension CredentialVersions.ObservedVersion {
    /// Returns true if `other` is a later observation of another value.
    fileprivate func isOlder(than other: Self) -> Bool { number < other.number && digest != other.digest }
}
