// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import EventLoop
internal import HTTPTypes
public import Secrets

// The security checks of a MobileFirst server: `WLClient.registerChallengeHandler` and `WLAuthorizationManager`.
extension ChallengeClient {
    /// Has `handler` answer the challenges of its security check from now on, those of logins under way excepted.
    ///
    /// Throws `alreadyRegistered` where there is a handler for that check.
    public func registerChallengeHandler(
        _ handler: some SecurityCheckChallengeHandler
    ) throws(RegistrationError) {
        try life.shared.registry.register(handler)
    }

    /// Takes the handler of that security check back; does nothing where there is none.
    public func unregisterChallengeHandler(securityCheck: String) {
        life.shared.registry.unregister(securityCheck: securityCheck)
    }

    /// An access token for the words of `scope`, separated by spaces: the one that is held, or a new one, for which the security
    /// checks of the scope are passed. Requests have theirs without this.
    ///
    /// Throws `login` where a check is not passed, `timedOut` after `ClientConfiguration.Timeouts.login`, `noServer` without
    /// `ClientConfiguration.mobileFirst`.
    public func obtainAccessToken(scope: String = "") async throws(ClientError) -> AccessToken {
        guard let login = life.shared.registry.mobileFirstLogin, let client = life.shared.registry.mobileFirst else {
            throw ClientError.noServer
        }
        let words = client.configuration.scope.union(Scope(text: scope))
        // Once more where another login of this client took its turn: it had at most that many before it.
        for _ in 0..<16 {
            let outcome = try await life.wait { site, finish in
                site.requestSession(of: login, scope: words, finish)
            }
            switch outcome {
            case .kept(let held, _), .won(let held): return try AccessToken(held.session, scope: words)
            case .failed(let failure): throw ClientError(failure)
            case .askAgain, .prove: continue
            }
        }
        throw ClientError(.timedOut, detail: "Other logins of this client came before it again and again.")
    }

    /// Logs in to `securityCheck` with these credentials ahead of any challenge, such as
    /// `["username": "ann", "password": …]`. The check is validated anew even where it holds. Where they are wrong, the handler
    /// of the check is asked, if one is registered.
    ///
    /// Throws `inProcess` where a login at this server is under way, as the original does, and what `obtainAccessToken` throws.
    public func login(securityCheck: String, credentials: JSONValue) async throws(ClientError) {
        let (registry, gate) = (life.shared.registry, life.shared.services.gate)
        let answer = SecretJSON(credentials)
        do throws(LoginFailure) {
            try gate.requireNew(answer.text, to: securityCheck)
        } catch {
            throw ClientError(error)
        }
        guard let login = registry.login(answering: securityCheck, with: answer) else { throw ClientError.noServer }
        let outcome = try await life.wait { site, finish in
            site.logIn(login, scope: Scope([securityCheck]), finish)
        }
        guard case .failed(let failure) = outcome else { return }
        throw failure == .inProcess(login.name) ? ClientError(.inProcess, detail: failure.detail) : ClientError(failure)
    }

    /// Logs out of `securityCheck` at the server. All access tokens are forgotten, whatever the server answers.
    ///
    /// Throws `login` where the server did not take note of it.
    public func logout(securityCheck: String) async throws(ClientError) {
        guard let client = life.shared.registry.mobileFirst, let login = life.shared.registry.mobileFirstLogin else {
            throw ClientError.noServer
        }
        let outcome = try await life.wait { site, finish in
            site.logOut(login) { (conversation) throws(LoginFailure) in
                try await client.logOut(of: securityCheck, conversation)
            } _: { result in
                if case .failure(let failure) = result { finish(.failed(failure)) } else { finish(.askAgain) }
            }
        }
        if case .failed(let failure) = outcome { throw ClientError(failure) }
    }

    /// Lets all answers that were rejected be sent again, such as that of a person whose account was unlocked.
    public func unlatch() { life.shared.services.gate.unlatch(nil) }
}

/// What a MobileFirst server gave for a scope: an opaque text that goes with requests as `Authorization: Bearer`.
public struct AccessToken: Sendable {
    /// The token.
    public let value: Secret
    /// The scope words that were asked for.
    public let scope: Scope
    /// When it ends, in milliseconds since 1970; `nil` where the server did not say.
    public let expiresAt: Int64?

    /// The token of `session`.
    init(_ session: Session, scope: Scope) throws(ClientError) {
        let prefix = Array("Bearer ".utf8)
        let field = session.fields.first { $0.name == .authorization }?.value.revealBytes() ?? []
        guard field.starts(with: prefix) else {
            throw ClientError(.upstreamProtocol, detail: "The login won no token that can be told.")
        }
        value = Secret(field.dropFirst(prefix.count))
        self.scope = scope
        expiresAt = session.expiresAt
    }
}

extension ClientError {
    fileprivate static let noServer = ClientError(
        .noServer, detail: "There are no security checks without a server: set `mobileFirst` of the configuration.")
}
