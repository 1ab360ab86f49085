// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Synchronization

/// Sessions at identity providers, by origin and credential.
///
/// They are in memory only, and survive a reload. One login at a provider serves all upstreams that name it.
package final class ProviderSessions: Sendable {
    private struct Key: Hashable {
        let origin: Origin
        let credential: String
    }

    private let known = Mutex<[Key: ProviderSession]>([:])

    /// Creates a table without sessions.
    package init() {}

    /// Returns the sessions of a login at the providers of `route`.
    ///
    /// The latches of all logins that share a provider and a credential guard one value.
    package func sessions(on route: SignOnRoute, for key: LatchKey) -> SignOnSessions {
        // In one order for all, so that no two logins wait for each other.
        let origins = route.providers.sorted { "\($0)" < "\($1)" }
        return SignOnSessions(
            origins.map { origin in
                let session = known.withLock { known in
                    let place = Key(origin: origin, credential: key.credential)
                    let session = known[place] ?? ProviderSession(at: origin)
                    known[place] = session
                    return session
                }
                session.register(key)
                return session
            }, of: key)
    }
}

/// Session of one credential at one provider.
final class ProviderSession: Sendable {
    private struct State {
        var jar = CookieJar()
        /// The credential that logged in.
        var owner: Credential?
        /// Latches of the logins that use the session.
        var latches: Set<LatchKey> = []
        /// Logins that failed with the session: their next one begins without it.
        var avoiders: Set<LatchKey> = []
    }

    let origin: Origin
    /// Held by the one login at a time that visits the provider.
    let mutex = AsyncMutex()
    private let state = Mutex(State())

    init(at origin: Origin) { self.origin = origin }

    /// Latches of all logins that send this credential to this provider.
    var latches: Set<LatchKey> { state.withLock { $0.latches } }

    func register(_ latch: LatchKey) { state.withLock { _ = $0.latches.insert(latch) } }

    /// Returns the cookies of the session that `credential` has established; empty for any other value of it, and once
    /// after a login of `key` failed with the session.
    func cookies(of credential: Credential, for key: LatchKey) -> CookieJar {
        state.withLock { state in
            guard state.avoiders.remove(key) == nil, state.owner?.fields == credential.fields else {
                return CookieJar()
            }
            return state.jar
        }
    }

    /// Makes the next login of `key` begin without the session. Other logins keep it.
    func avoid(for key: LatchKey) { state.withLock { _ = $0.avoiders.insert(key) } }

    /// Replaces the cookies by those that `credential` has now.
    func replace(_ jar: CookieJar, of credential: Credential) {
        state.withLock { ($0.jar, $0.owner) = (jar, credential) }
    }

    /// Drops the cookies.
    func forget() {
        state.withLock { ($0.jar, $0.owner, $0.avoiders) = (CookieJar(), nil, []) }
    }
}
