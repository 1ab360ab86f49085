// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// Which values of which credentials the logins have used, by keyed digest: so that a session won with a value that is not the
/// present one can be found, and won anew before the server refuses it.
package final class CredentialLedger: Sendable {
    /// One value of a credential, and when somebody began to look it up: numbers that rise.
    struct Sight: Sendable, Equatable {
        /// Empty where no source knew the credential.
        var digest: [UInt8]
        var number: UInt64
    }

    private struct State: Sendable {
        /// What the last login of each key used, by the credential's name.
        var used: [SessionKey: [String: Sight]] = [:]
        /// What the watch saw last.
        var present: [String: Sight] = [:]
        var lastNumber: UInt64 = 0
    }

    /// Keys come from what upstreams name as scopes, so their number has to be bounded.
    private static let limit = 4096

    private let digest: @Sendable (Credential) -> [UInt8]
    private let state = Mutex(State())

    /// A ledger; `digest` tells values apart and tells nothing else about them.
    package init(digest: @escaping @Sendable (Credential) -> [UInt8]) {
        self.digest = digest
    }

    /// The credentials that logins have looked up.
    package var names: Set<String> {
        state.withLock { Set($0.used.values.flatMap(\.keys)) }
    }

    /// A number for a look-up that begins now.
    package func beginLooking() -> UInt64 {
        state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    /// Whoever watches the sources has found that credential, or no longer, by the look-up of that number. Says whether it is
    /// another than one that a login used before.
    @discardableResult
    package func saw(_ name: String, as credential: Credential?, number: UInt64) -> Bool {
        let sight = Sight(digest: credential.map(digest) ?? [], number: number)
        return state.withLock { state in
            if let present = state.present[name], present.number >= number { return false }
            let isNews = state.present.updateValue(sight, forKey: name)?.digest != sight.digest
            return isNews && state.used.values.contains { $0[name].map { $0.isOlder(than: sight) } ?? false }
        }
    }

    /// The keys whose last login used a value that the watch has found replaced since. A credential that was removed does not
    /// count: there is nothing to win a session with.
    package var outdated: Set<SessionKey> {
        state.withLock { state in
            let present = state.present
            guard !present.isEmpty else { return [] }
            return Set(
                state.used.lazy.filter { _, values in
                    values.contains { name, sight in
                        present[name].map { !$0.digest.isEmpty && sight.isOlder(than: $0) } ?? false
                    }
                }.map(\.key))
        }
    }

    /// Returns whether `digest` is that of an earlier value of the credential `name`, or of one that was removed. False if nobody has
    /// looked the credential up yet.
    package func isReplaced(_ digest: [UInt8], of name: String) -> Bool {
        state.withLock { state in
            var last = state.present[name]
            for case let sight? in state.used.values.lazy.map({ $0[name] }) where sight.number > last?.number ?? 0 {
                last = sight
            }
            return last.map { $0.digest != digest } ?? false
        }
    }

    /// The digests of what the last login of `key` used, by the credential's name.
    package func versions(of key: SessionKey) -> [String: [UInt8]] {
        state.withLock { state in
            state.used[key]?.mapValues(\.digest).filter { !$0.value.isEmpty } ?? [:]
        }
    }

    /// A session of `key` was taken over, which an earlier process had won with these.
    package func note(_ key: SessionKey, _ versions: [String: [UInt8]]) {
        guard !versions.isEmpty else { return }
        let number = beginLooking()
        keep(versions.mapValues { Sight(digest: $0, number: number) }, for: key)
    }

    /// Nobody holds a session of that key any more.
    func forget(_ key: SessionKey) {
        state.withLock { _ = $0.used.removeValue(forKey: key) }
    }

    /// A login of that key is over. Unless nothing is known about its credentials, the key hangs on what it looked up.
    func note(_ key: SessionKey, _ lookUps: LookUps, _ result: Result<Session, LoginFailure>) {
        if case .failure(let failure) = result, failure.isUnknown { return }
        let sights = lookUps.sights
        if !sights.isEmpty { keep(sights, for: key) }
    }

    private func keep(_ sights: [String: Sight], for key: SessionKey) {
        state.withLock { state in
            if state.used.count >= Self.limit { state.used.removeAll() }
            state.used[key] = sights
        }
    }

    /// The credentials as one login sees them; what it looks up is kept for `note`.
    final class LookUps: CredentialProvider {
        private let credentials: any CredentialProvider
        private let ledger: CredentialLedger
        private let seen = Mutex<[String: Sight]>([:])

        init(_ credentials: any CredentialProvider, _ ledger: CredentialLedger) {
            self.credentials = credentials
            self.ledger = ledger
        }

        var sights: [String: Sight] { seen.withLock { $0 } }

        func credential(named name: String) async throws(CredentialError) -> Credential? {
            let number = ledger.beginLooking()
            let found = try await credentials.credential(named: name)
            let sight = Sight(digest: found.map(ledger.digest) ?? [], number: number)
            seen.withLock { $0[name] = sight }
            return found
        }

        func advice(onMissing name: String) -> String { credentials.advice(onMissing: name) }
    }
}

extension CredentialLedger.Sight {
    /// Returns whether `other` is a later sight of another value.
    fileprivate func isOlder(than other: Self) -> Bool { number < other.number && digest != other.digest }
}
