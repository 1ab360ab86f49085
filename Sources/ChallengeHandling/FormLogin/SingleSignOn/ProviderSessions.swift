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
            })
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
    }

    let origin: Origin
    /// Held by the one login at a time that uses the session.
    let mutex = AsyncMutex()
    private let state = Mutex(State())

    init(at origin: Origin) { self.origin = origin }

    /// Latches of all logins that send this credential to this provider.
    var latches: Set<LatchKey> { state.withLock { $0.latches } }

    func register(_ latch: LatchKey) { state.withLock { _ = $0.latches.insert(latch) } }

    /// Returns the cookies of the session that `credential` has established; empty for any other value of it.
    func cookies(of credential: Credential) -> CookieJar {
        state.withLock { $0.owner?.fields == credential.fields ? $0.jar : CookieJar() }
    }

    /// Replaces the cookies by those that `credential` has now. Without an owner, no cookies are kept.
    func replace(_ jar: CookieJar, of credential: Credential?) {
        state.withLock { state in
            (state.jar, state.owner) = credential == nil ? (CookieJar(), nil) : (jar, credential)
        }
    }
}

/// Sessions at the providers of one login, in the order in which they are used.
package struct SignOnSessions: Sendable {
    private let sessions: [ProviderSession]

    init(_ sessions: [ProviderSession]) { self.sessions = sessions }

    /// Runs `login` when no other login is under way at any of the providers with this credential.
    func inTurn<Value: Sendable>(
        _ challenge: String, _ login: @escaping @Sendable () async throws(LoginFailure) -> Value
    ) async throws(LoginFailure) -> Value {
        try await Self.inTurn(sessions[...], challenge, login)
    }

    private static func inTurn<Value: Sendable>(
        _ sessions: ArraySlice<ProviderSession>, _ challenge: String,
        _ login: @escaping @Sendable () async throws(LoginFailure) -> Value
    ) async throws(LoginFailure) -> Value {
        guard let first = sessions.first else { return try await login() }
        return try await first.mutex.withLock(orThrow: .cancelledInQueue(challenge)) {
            () async throws(LoginFailure) in
            try await inTurn(sessions.dropFirst(), challenge, login)
        }
    }

    /// Throws if the value was rejected in a login of another upstream at one of the providers.
    func requireOpenLatches(for use: CredentialUse, in conversation: Conversation) throws(LoginFailure) {
        try use.requireOpenLatch(in: conversation)
        let others = sessions.reduce(into: Set<LatchKey>()) { $0.formUnion($1.latches) }.subtracting([use.key])
        for key in others.sorted(by: { "\($0.origin) \($0.challenge)" < "\($1.origin) \($1.challenge)" }) {
            try CredentialUse(key: key, credential: use.credential).requireOpenLatch(in: conversation)
        }
    }

    /// Returns the cookies to begin with, by origin.
    func cookies(of credential: Credential) -> [Origin: CookieJar] {
        Dictionary(sessions.map { ($0.origin, $0.cookies(of: credential)) }) { $1 }
    }

    /// Keeps the providers' cookies of a login that worked.
    func keep(_ jars: [Origin: CookieJar], of credential: Credential) {
        for session in sessions {
            if let jar = jars[session.origin], !jar.isEmpty { session.replace(jar, of: credential) }
        }
    }

    /// Drops the cookies after a login that failed: the next one begins without them.
    func forget() {
        for session in sessions { session.replace(CookieJar(), of: nil) }
    }
}
