// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// The credential values used by logins, as keyed digests.
///
/// Finds sessions established with an outdated value, so that they are replaced before the server refuses them.
package final class CredentialVersions: Sendable {
    /// The place of a lookup in the order of all lookups.
    ///
    /// A lookup in the sources of a later configuration is later, whenever it began: logins of the earlier one may still look up.
    package struct LookupNumber: Sendable, Equatable, Comparable {
        /// The number of the configuration whose sources were asked.
        let generation: UInt64
        /// The number of the lookup, which rises.
        let number: UInt64

        /// Returns true if the left one is earlier.
        package static func < (left: Self, right: Self) -> Bool {
            (left.generation, left.number) < (right.generation, right.number)
        }
    }

    /// One value of a credential, with the number of its lookup.
    struct ObservedVersion: Sendable, Equatable {
        /// The digest; empty if no source knew the credential.
        var digest: [UInt8]
        var number: LookupNumber
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
        /// The configuration in force.
        var generation: UInt64 = 0
        /// The credentials that were looked up in the sources of the configuration in force.
        var compared: Set<String> = []

        /// Returns true if one of `values` was replaced since. A removed credential does not count.
        func isOutdated(_ values: [String: ObservedVersion]) -> Bool {
            values.contains { name, observed in
                present[name].map { !$0.digest.isEmpty && observed.isOlder(than: $0) } ?? false
            }
        }

        /// Records that a lookup of that number, in the present sources, has said what there is to say about a credential.
        mutating func compare(_ name: String, _ number: LookupNumber) {
            if number.generation == generation { compared.insert(name) }
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

    /// Puts the configuration of that number in force: the values that logins found in earlier sources must be compared.
    package func begin(_ generation: UInt64) {
        state.withLock { state in
            guard generation > state.generation else { return }
            (state.generation, state.compared) = (generation, [])
        }
    }

    /// The credentials whose value a login found in earlier sources, and that were not looked up in the present ones yet.
    ///
    /// A login that began before a reload may find its value after the reload, and end later still.
    package var uncompared: Set<String> {
        state.withLock { state in
            guard state.generation > 0 else { return [] }
            var names: Set<String> = []
            for values in state.used.values {
                for (name, observed) in values
                where observed.number.generation < state.generation && !state.compared.contains(name) {
                    names.insert(name)
                }
            }
            return names
        }
    }

    /// Records that a lookup of that number cannot tell the value of a credential: only a person can.
    package func recordUnknown(_ name: String, number: LookupNumber) {
        state.withLock { $0.compare(name, number) }
    }

    /// Returns the number of a lookup that begins now, in the sources of that configuration; by default, of the one in force.
    package func beginLookup(in generation: UInt64? = nil) -> LookupNumber {
        state.withLock { state in
            state.lastNumber += 1
            return LookupNumber(generation: generation ?? state.generation, number: state.lastNumber)
        }
    }

    /// Records the value found by the watch in the lookup of that number; `nil` if the credential is gone.
    ///
    /// Returns true if the value differs from one that a login used before.
    @discardableResult
    package func recordLookup(of name: String, as credential: Credential?, number: LookupNumber) -> Bool {
        let observed = ObservedVersion(digest: credential.map(digest) ?? [], number: number)
        return state.withLock { state in
            state.compare(name, number)
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
            for case let observed? in state.used.values.lazy.map({ $0[name] })
            where last.map({ observed.number > $0.number }) ?? true {
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

    /// A credential provider that records the lookups of one login in the sources of its plan.
    final class RecordingProvider: CredentialProvider {
        private let sources: PlanSources
        private let versions: CredentialVersions
        private let seen = Mutex<[String: ObservedVersion]>([:])

        init(_ sources: PlanSources, _ versions: CredentialVersions) {
            self.sources = sources
            self.versions = versions
        }

        var observations: [String: ObservedVersion] { seen.withLock { $0 } }

        func credential(named name: String) async throws(CredentialError) -> Credential? {
            let number = versions.beginLookup(in: sources.generation)
            let found = try await sources.credentials.credential(named: name)
            let observed = ObservedVersion(digest: found.map(versions.digest) ?? [], number: number)
            seen.withLock { $0[name] = observed }
            return found
        }

        func advice(onMissing name: String) -> String { sources.credentials.advice(onMissing: name) }
    }
}

extension CredentialVersions.ObservedVersion {
    /// Returns true if `other` is a later observation of another value.
    fileprivate func isOlder(than other: Self) -> Bool { number < other.number && digest != other.digest }
}
