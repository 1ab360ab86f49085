// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

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
