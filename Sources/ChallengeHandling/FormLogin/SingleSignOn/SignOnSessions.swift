// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Synchronization

/// Sessions at the providers of one login, in the order in which they are used.
package struct SignOnSessions: Sendable {
    private let sessions: [ProviderSession]
    private let key: LatchKey

    init(_ sessions: [ProviderSession], of key: LatchKey) {
        self.sessions = sessions
        self.key = key
    }

    /// Runs `visit` when no other login visits any of the providers with this credential, in this process or in another one with the
    /// same state.
    ///
    /// The wait is reported to `conversation`: it is not the login's own time.
    func inTurn<Value: Sendable>(
        _ conversation: Conversation, _ visit: () async throws(LoginFailure) -> Value
    ) async throws(LoginFailure) -> Value {
        conversation.waiting(true)
        return try await inTurn(conversation, sessions[...]) { () async throws(LoginFailure) in
            conversation.waiting(false)
            return try await visit()
        }
    }

    private func inTurn<Value: Sendable>(
        _ conversation: Conversation, _ sessions: ArraySlice<ProviderSession>,
        _ visit: () async throws(LoginFailure) -> Value
    ) async throws(LoginFailure) -> Value {
        guard let first = sessions.first else { return try await visit() }
        return try await first.mutex.withLock(orThrow: .cancelledInQueue(key.challenge)) {
            () async throws(LoginFailure) in
            try await conversation.inTurn("provider\0\(first.origin)\0\(key.credential)", of: key.challenge) {
                () async throws(LoginFailure) in
                try await inTurn(conversation, sessions.dropFirst(), visit)
            }
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

    /// Returns the cookies of the sessions that `credential` has established, by origin.
    func cookies(of credential: Credential) -> [Origin: CookieJar] {
        let jars = sessions.map { ($0.origin, $0.cookies(of: credential, for: key)) }
        return Dictionary(jars.filter { !$0.1.isEmpty }) { $1 }
    }

    /// Keeps the providers' cookies after a visit in a session, or one that established a session.
    func keep(_ jars: [Origin: CookieJar], of credential: Credential) {
        for session in sessions {
            if let jar = jars[session.origin], !jar.isEmpty { session.replace(jar, of: credential) }
        }
    }

    /// Drops the sessions: the next login begins without them.
    func forget() {
        for session in sessions { session.forget() }
    }

    /// Makes the next login of this challenge begin without the sessions. Other challenges keep them.
    func avoid() {
        for session in sessions { session.avoid(for: key) }
    }
}

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
