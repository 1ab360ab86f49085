// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import EventLoop
internal import HTTPTypes
public import Secrets

// The security checks of a MobileFirst server: `WLClient.registerChallengeHandler` and `WLAuthorizationManager`.
extension ChallengeClient {
    /// Registers `handler` for the challenges of its security check, except in logins under way.
    ///
    /// Throws `alreadyRegistered` if that check has a handler.
    public func registerChallengeHandler(
        _ handler: some SecurityCheckChallengeHandler
    ) throws(RegistrationError) {
        try life.shared.registry.register(handler)
    }

    /// Unregisters the handler of that security check; does nothing without one.
    public func unregisterChallengeHandler(securityCheck: String) {
        life.shared.registry.unregister(securityCheck: securityCheck)
    }

    /// Returns an access token for the words of `scope`, separated by spaces.
    ///
    /// The token is the held one, or a new one after passing the security checks of the scope. Requests get their token
    /// without this call. Throws `login` if a check is not passed, `timedOut` after
    /// `ClientConfiguration.Timeouts.login`, `noServer` without `ClientConfiguration.mobileFirst`.
    public func obtainAccessToken(scope: String = "") async throws(ClientError) -> AccessToken {
        guard let login = life.shared.registry.mobileFirstLogin, let client = life.shared.registry.mobileFirst else {
            throw ClientError.noServer
        }
        let words = client.configuration.scope.union(Scope(text: scope))
        // Repeated if another login of this client came first; this can happen at most that many times.
        for _ in 0..<16 {
            let outcome = try await life.wait { site, finish in
                site.requestSession(of: login, scope: words, finish)
            }
            switch outcome {
            case .kept(let held, _), .established(let held): return try AccessToken(held.session, scope: words)
            case .failed(let failure): throw ClientError(failure)
            case .askAgain, .verify: continue
            }
        }
        throw ClientError(.timedOut, detail: "Other logins of this client repeatedly came first. Try again.")
    }

    /// Logs in to `securityCheck` with these credentials before any challenge.
    ///
    /// An example is `["username": "ann", "password": …]`. The check is validated again even if already passed. If the
    /// credentials are wrong, the handler of the check is asked, if one is registered. Throws `inProcess` if a login at
    /// this server is under way, as the original does, and the errors of `obtainAccessToken`.
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

    /// Logs out of `securityCheck` at the server, and drops all access tokens in any case.
    ///
    /// Throws `login` if the server did not confirm the logout.
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

    /// Allows all rejected answers to be sent again, for example after an account was unlocked.
    ///
    /// The effect is immediate; `ClientConfiguration.attempts` stores it soon after.
    public func unlatch() { life.shared.services.gate.unlatch(nil) }
}

/// An access token of a MobileFirst server: an opaque text, sent as `Authorization: Bearer`.
public struct AccessToken: Sendable {
    /// The token.
    public let value: Secret
    /// The requested scope words.
    public let scope: Scope
    /// The expiry time in milliseconds since 1970; `nil` if the server did not name one.
    public let expiresAt: Int64?

    init(_ session: Session, scope: Scope) throws(ClientError) {
        let prefix = Array("Bearer ".utf8)
        let field = session.fields.first { $0.name == .authorization }?.value.revealBytes() ?? []
        guard field.starts(with: prefix) else {
            throw ClientError(.upstreamProtocol, detail: "The login brought no bearer token.")
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
