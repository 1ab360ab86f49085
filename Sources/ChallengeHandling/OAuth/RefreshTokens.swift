// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets
internal import Synchronization

/// The refresh token in force for one credential at one token endpoint.
///
/// Servers that rotate refresh tokens (RFC 6749 §6, RFC 9700 §4.14.2) take each once, and revoke everything where one is
/// sent again. So what a server gives in its place is kept, sealed, before its access token is used; it replaces the
/// credential's own until that changes. Each login reads it anew, for `countersign login` may have used it meanwhile.
public final class RefreshTokens: Sendable {
    /// Lets one use of the token happen at a time, over all sessions won with it.
    let turnstile = Turnstile()
    private let stateName: String
    /// What could not be kept yet.
    private let unkept = Mutex<KeptRefreshToken?>(nil)

    /// Those of the credential of that name at that origin.
    public init(credential: String, origin: Origin) {
        stateName = "refresh-token.\(StateName.word(credential)).\(StateName.word("\(origin)"))"
    }

    /// The token to send. Throws `no-credential` where the credential has none, and `login-failed` where the state cannot
    /// be read or written: a token that may have been used already is not tried.
    func current(for use: CredentialUse, in conversation: Conversation) throws(LoginFailure) -> Secret {
        let given = try use.field("refresh-token")
        do throws(StateError) {
            if let waiting = unkept.withLock({ $0 }), waiting.replaces(given, of: use.credential) {
                try conversation.state.save(waiting.sealed, as: stateName)
                unkept.withLock { $0 = nil }
                return waiting.token
            }
            guard let kept = try conversation.state.load(stateName).flatMap(KeptRefreshToken.init(sealed:)),
                kept.replaces(given, of: use.credential)
            else { return given }
            return kept.token
        } catch {
            throw failure("The refresh token that is in force cannot be read or kept", error, use)
        }
    }

    /// Keeps `token` in place of the one that was just used. Where that fails, its session is not used either; the token
    /// stays in memory, and the next login keeps it before it asks for anything.
    func keep(_ token: Secret, for use: CredentialUse, in conversation: Conversation) throws(LoginFailure) {
        let kept = KeptRefreshToken(
            token: token, given: try use.field("refresh-token"), client: use.credential["client-id"])
        do throws(StateError) {
            try conversation.state.save(kept.sealed, as: stateName)
            unkept.withLock { $0 = nil }
        } catch {
            unkept.withLock { $0 = kept }
            throw failure("The next refresh token cannot be kept, so the token won with it is not used", error, use)
        }
    }

    private func failure(_ what: String, _ error: StateError, _ use: CredentialUse) -> LoginFailure {
        LoginFailure(.failed, challenge: use.key.challenge, detail: "\(what): \(error.reason).")
    }
}

/// A rotated refresh token, and the credential that it stands for.
private struct KeptRefreshToken: Sendable {
    let token: Secret
    /// The credential's own refresh token, with which the line of tokens began.
    let given: Secret
    let client: Secret?

    init(token: Secret, given: Secret, client: Secret?) {
        self.token = token
        self.given = given
        self.client = client
    }

    /// Whether the credential is still the one that it stands for.
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
