// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets
internal import Synchronization

/// Basic authentication (RFC 7617).
public struct BasicScheme: AuthenticationScheme {
    /// Creates the scheme.
    public init() {}

    /// `basic`.
    public var name: String { "basic" }
    /// True: the answer never depends on a challenge.
    public var needsNoChallenge: Bool { true }

    /// Returns `refused` if Basic is offered: the answer would be the one that was just sent.
    public func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        let isOffered = challenges.contains { challenge in
            challenge.isScheme("Basic") && (realm == nil || challenge["realm"] == realm)
        }
        return isOffered ? .refused : nil
    }

    /// Returns a session with one constant field.
    public func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer {
        let use = try occasion.requireUse()
        let field = try Self.field(of: use.credential, challenge: occasion.name)
        return .session(Session(unverified: use, fields: [field]))
    }

    /// Returns the field for the name and the password of `credential`.
    static func field(of credential: Credential, challenge: String) throws(LoginFailure) -> InjectedField {
        try field(
            for: NameAndPassword(credential, challenge: challenge), credential: credential.name, challenge: challenge)
    }

    /// Returns `Authorization: Basic …` for `pair`, always in UTF-8. Without `charset` a server leaves the encoding to
    /// the client (RFC 7617 §2.1). Throws `no-credential` for a user name with a colon, which would end the name.
    public static func field(
        for pair: NameAndPassword, credential: String, challenge: String
    ) throws(LoginFailure) -> InjectedField {
        let hasColon = pair.username.withBytes { bytes in
            for index in bytes.indices where bytes[index] == UInt8(ascii: ":") { return true }
            return false
        }
        guard !hasColon else {
            throw LoginFailure(
                .noCredential, challenge: challenge,
                detail: "The field \"username\" of the credential \"\(credential)\" holds a colon, which Basic cannot "
                    + "carry: the text after the colon would be read as the password.")
        }
        let joined = Secret.joining([pair.username, Secret(":"), pair.password])
        return InjectedField(name: .authorization, value: .joining([Secret("Basic "), joined.base64()]))
    }
}

extension SchemeKind {
    /// `basic`.
    package static let basic = SchemeKind(rawValue: "basic") { _, _, _ in BasicScheme() }
}

/// Handler of Basic challenges (RFC 7617), with name and password of a login handler. The handler of the realm takes
/// precedence over the one for all realms.
public final class BasicChallengeHandler: ChallengeHandler {
    private struct State: Sendable {
        var everywhere: (any LoginHandler)?
        var realms: [String: any LoginHandler] = [:]
    }

    private let state = Mutex(State())

    /// Creates a handler that asks `loginHandler`, if there is one.
    public init(_ loginHandler: (any LoginHandler)? = nil) {
        if let loginHandler { setLoginHandler(loginHandler) }
    }

    /// Sets the handler for all realms without their own handler.
    @discardableResult
    public func setLoginHandler(_ handler: any LoginHandler) -> Self {
        state.withLock { $0.everywhere = handler }
        return self
    }

    /// Sets the handler for `realm`, which is compared case-sensitively (RFC 9110 §11.5).
    @discardableResult
    public func setRealmLoginHandler(_ realm: String, _ handler: any LoginHandler) -> Self {
        state.withLock { $0.realms[realm] = handler }
        return self
    }

    /// Returns whether the challenge is Basic and its realm has a login handler.
    public func canHandle(_ request: ChallengeRequest) -> Bool {
        BasicScheme().offer(among: [request.challenge], realm: nil) != nil && loginHandler(for: request) != nil
    }

    /// Answers with the login handler's name and password. Throws `no-credential` for a name with a colon and for
    /// characters that Basic cannot carry.
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
