// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets
internal import Synchronization

/// Answers Basic (RFC 7617) with name and password of a login handler: that of the realm, or else that for all realms.
public final class BasicChallengeHandler: ChallengeHandler {
    private struct State: Sendable {
        var everywhere: (any LoginHandler)?
        var realms: [String: any LoginHandler] = [:]
    }

    private let state = Mutex(State())

    /// A handler that asks `loginHandler`, or, without one, nobody yet.
    public init(_ loginHandler: (any LoginHandler)? = nil) {
        if let loginHandler { setLoginHandler(loginHandler) }
    }

    /// Has `handler` asked for all realms that have none of their own.
    @discardableResult
    public func setLoginHandler(_ handler: any LoginHandler) -> Self {
        state.withLock { $0.everywhere = handler }
        return self
    }

    /// Has `handler` asked for `realm`, which is compared to the letter (RFC 9110 section 11.5).
    @discardableResult
    public func setRealmLoginHandler(_ realm: String, _ handler: any LoginHandler) -> Self {
        state.withLock { $0.realms[realm] = handler }
        return self
    }

    /// Whether it is Basic, of a realm that somebody is asked for.
    public func canHandle(_ request: ChallengeRequest) -> Bool {
        BasicScheme().offer(among: [request.challenge], realm: nil) != nil && loginHandler(for: request) != nil
    }

    /// What the login handler says, as Basic has it. Throws `no-credential` for a name with a colon, or with what Basic cannot
    /// carry.
    public func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
        guard let found = try await loginHandler(for: request)?.credentials(for: request) else { return nil }
        let realm = request.realm ?? "Basic"
        let credential = Credential(
            name: realm, fields: ["username": Secret(found.username), "password": found.password])
        return ChallengeResponse(credentials: try BasicScheme.field(of: credential, challenge: realm).value)
    }

    private func loginHandler(for request: ChallengeRequest) -> (any LoginHandler)? {
        state.withLock { state in request.realm.flatMap { state.realms[$0] } ?? state.everywhere }
    }
}
