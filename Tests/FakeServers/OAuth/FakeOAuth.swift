// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// An OAuth 2 server and the resources that it protects (RFC 6749, RFC 6750): `/oauth/token`, and `/oauth/api/…` in the
/// realm api. Below `/oauth/api/admin/` the scope admin is needed.
package final class FakeOAuth: Sendable {
    private let state: Mutex<OAuthState>
    private let clock: FakeClock
    private let recorder: Recorder
    private let faults: FaultPlan

    init(clock: FakeClock, recorder: Recorder, faults: FaultPlan) {
        self.clock = clock
        self.recorder = recorder
        self.faults = faults
        self.state = Mutex(OAuthState())
    }

    /// Changes the rules; issued tokens stay.
    package func configure(_ change: (inout OAuthRules) -> Void) {
        state.withLock { change(&$0.rules) }
    }

    /// Revokes every access token; refresh tokens stay.
    package func revokeTokens() {
        state.withLock { $0.tokens.removeAll() }
    }

    /// Makes an access token without the endpoint, as an administrator's page would.
    package func issueToken(scope: String = "read") -> String {
        state.withLock { $0.makeToken(scope: Set(scope.split(separator: " ").map(String.init)), now: clock.now()) }
    }

    /// Number of requests whose token was not valid.
    package var refusedTokens: Int { state.withLock { $0.refusedTokens } }

    /// Makes a refresh token for that client, as a user's consent would.
    package func issueRefreshToken(to client: String = "demo", scope: String = "read") -> String {
        state.withLock { $0.beginLine(of: client, scope: scope) }
    }

    /// Revokes everything that came of that refresh token, as an administrator can.
    package func revoke(lineOf refreshToken: String) {
        state.withLock { state in
            if let grant = state.refreshTokens[refreshToken] { state.revoke(line: grant.line) }
        }
    }

    func isResponsible(for request: FakeRequest) -> Bool { request.path.hasPrefix("/oauth/") }

    func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        if request.path == "/oauth/token" { return faults.apply(at: .oauthToken) { token(request) } }
        guard request.path.hasPrefix("/oauth/api/") else { return .text(404, "Nothing here.\n") }
        return faults.apply(at: .oauthResource) { resource(request, inside) }
    }

    private func token(_ request: FakeRequest) -> FakeResponse {
        let (response, notes) = state.withLock { $0.issue(request, now: clock.now()) }
        recorder.note { record in
            if let answer = notes.answer {
                record.answers["oauth", default: []].append(answer)
                if notes.isRejected {
                    record.wrongAnswers["oauth", default: 0] += 1
                } else {
                    record.logins["oauth", default: 0] += 1
                }
            }
            record.tokens += notes.scopes
            record.violations += notes.violations
        }
        return response
    }

    private func resource(_ request: FakeRequest, _ inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        let given = request.authorization("Bearer")
        let scope = given.flatMap { token in state.withLock { $0.scope(of: token, now: clock.now()) } }
        let needed = request.path.hasPrefix("/oauth/api/admin/") ? "admin" : nil
        if given != nil, scope == nil { state.withLock { $0.refusedTokens += 1 } }
        let challenge: String
        switch (given, scope) {
        case (_, let scope?) where needed.map(scope.contains) ?? true:
            return inside(request)
        case (_, .some):
            challenge = "Bearer realm=\"api\", error=\"insufficient_scope\", scope=\"\(needed ?? "")\""
        case (.some, nil):
            challenge = "Bearer realm=\"api\", error=\"invalid_token\", error_description=\"The token has ended.\""
        case (nil, nil):
            challenge = "Bearer realm=\"api\""
        }
        recorder.note { $0.challenges["oauth", default: 0] += 1 }
        return .json(
            scope == nil ? 401 : 403, ["message": "Not without a token that is good for this."],
            fields: [("WWW-Authenticate", challenge)])
    }
}

/// The behaviour of the fake OAuth 2 server; a test may change it.
package struct OAuthRules: Sendable {
    /// A client that has registered by hand.
    package struct Client: Sendable {
        /// Its identifier.
        package var id: String
        /// Its secret; `nil`: it has none (a public client), or a key.
        package var secret: String?
        /// Its public key, by which its assertions are verified.
        package var key: JSON?
        /// The grants that it may use.
        package var grants: Set<String>

        /// Creates a client.
        package init(
            id: String, secret: String?, key: JSON? = nil,
            grants: Set<String> = ["client_credentials", "password", "refresh_token"]
        ) {
            self.id = id
            self.secret = secret
            self.key = key
            self.grants = grants
        }
    }

    /// The clients. The secret contains characters that Basic must carry encoded (RFC 6749 §2.3.1).
    package var clients = [Client(id: "demo", secret: "demo:secret+%")]
    /// Users and their passwords.
    package var users = ["ann": "demo"]
    /// The known elements of scopes; the first is the default of a client that asks for none.
    package var scopes = ["read", "write", "admin"]
    /// The lifetime of a token in seconds.
    package var tokenLife: Int64 = 300
    /// True if the answer contains `expires_in`.
    package var tellsLife = true
    /// True if a refresh token is valid once, and its second use revokes all that came from it (RFC 9700 §4.14.2).
    package var rotates = true

    /// Creates the rules of most tests.
    package init() {}
}
