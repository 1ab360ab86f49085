// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets
internal import Synchronization

/// The current refresh token of one credential at one token endpoint.
///
/// Servers that rotate refresh tokens (RFC 6749 §6, RFC 9700 §4.14.2) accept each once, and revoke everything if one is
/// sent again. So a new token is saved, sealed, before its access token is used. It replaces the credential's own until
/// the credential changes. Each login loads it again in its turn, because another process may have used it meanwhile.
public final class RefreshTokens: Sendable {
    /// Serializes uses of the token in this process, over all sessions established with it.
    private let mutex = AsyncMutex()
    private let stateName: String
    /// A token that could not be saved yet.
    private let unkept = Mutex<KeptRefreshToken?>(nil)
    /// The credential's fields as they were refused for more scope than before, if no request for less was answered since.
    private let unconfirmed = Mutex<[String: Secret]?>(nil)

    /// Creates the tokens of the named credential at that origin.
    public init(credential: String, origin: Origin) {
        stateName = "refresh-token.\(StateName.word(credential)).\(StateName.word("\(origin)"))"
    }

    /// Returns true if the value of `use` was refused for more scope, and it is not known if only for that.
    func isUnconfirmed(_ use: CredentialUse) -> Bool { unconfirmed.withLock { $0 == use.credential.fields } }

    /// Records that the value of `use` was refused for more scope, or that this question is settled.
    func setUnconfirmed(_ use: CredentialUse, _ isUnconfirmed: Bool) {
        unconfirmed.withLock { $0 = isUnconfirmed ? use.credential.fields : nil }
    }

    /// Runs `login` while no other login uses the token, in this process or in another one with the same state.
    ///
    /// A refresh token that is sent twice at once looks stolen to the server.
    func inTurn<Value: Sendable>(
        of challenge: String, in conversation: Conversation, _ login: () async throws(LoginFailure) -> Value
    ) async throws(LoginFailure) -> Value {
        try await mutex.withLock(orThrow: .cancelledInQueue(challenge)) { () async throws(LoginFailure) in
            try await conversation.inTurn(stateName, of: challenge, login)
        }
    }

    /// Returns the token to send. Throws `no-credential` if the credential has none, and `login-failed` if the state
    /// cannot be read or written: a token that may have been used already is not sent.
    func current(for use: CredentialUse, in conversation: Conversation) async throws(LoginFailure) -> Secret {
        let given = try use.field("refresh-token")
        do throws(StateError) {
            if let waiting = unkept.withLock({ $0 }), waiting.replaces(given, of: use.credential) {
                try await conversation.state.save(waiting.sealed, as: stateName)
                unkept.withLock { $0 = nil }
                return waiting.token
            }
            guard let stored = try await conversation.state.load(stateName) else { return given }
            guard let kept = KeptRefreshToken(sealed: stored) else {
                throw StateError(
                    reason:
                        "the state file \(stateName).sealed is of another version, or damaged; restore it, or remove it to "
                        + "use the credential's own refresh token")
            }
            return kept.replaces(given, of: use.credential) ? kept.token : given
        } catch {
            throw failure("The current refresh token cannot be read or saved", error, use)
        }
    }

    /// Saves `token` in place of the one just used. If that fails, its session is not used either; the token stays in
    /// memory, and the next login saves it before requesting anything.
    func keep(_ token: Secret, for use: CredentialUse, in conversation: Conversation) async throws(LoginFailure) {
        let kept = KeptRefreshToken(
            token: token, given: try use.field("refresh-token"), client: use.credential["client-id"])
        do throws(StateError) {
            try await conversation.state.save(kept.sealed, as: stateName)
            unkept.withLock { $0 = nil }
        } catch {
            unkept.withLock { $0 = kept }
            throw failure("The next refresh token cannot be saved, so its access token is not used", error, use)
        }
    }

    private func failure(_ what: String, _ error: StateError, _ use: CredentialUse) -> LoginFailure {
        LoginFailure(.failed, challenge: use.key.challenge, detail: "\(what): \(error.reason).")
    }
}

/// A rotated refresh token and the credential that it replaces.
private struct KeptRefreshToken: Sendable {
    let token: Secret
    /// The credential's own refresh token, the first of the chain.
    let given: Secret
    let client: Secret?

    init(token: Secret, given: Secret, client: Secret?) {
        self.token = token
        self.given = given
        self.client = client
    }

    /// Returns whether the credential is still the one that the token replaces.
    func replaces(_ given: Secret, of credential: Credential) -> Bool {
        self.given == given && client == credential["client-id"]
    }

    var sealed: Secret {
        var members: [String: JSONValue] = [
            "token": .string(Base64.encode(token.revealBytes())), "given": .string(Base64.encode(given.revealBytes())),
        ]
        if let client { members["client"] = .string(Base64.encode(client.revealBytes())) }
        return SecretJSON(.object(members)).text
    }

    init?(sealed: Secret) {
        guard let value = JSONValue(parsing: sealed.revealBytes()), let token = Self.secret(value["token"]),
            let given = Self.secret(value["given"])
        else { return nil }
        self.init(token: token, given: given, client: Self.secret(value["client"]))
    }

    private static func secret(_ value: JSONValue?) -> Secret? {
        value?.stringValue.flatMap { Base64.decode($0) }.map { Secret($0) }
    }
}
