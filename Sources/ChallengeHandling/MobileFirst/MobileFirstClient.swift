// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// A client of one MobileFirst 8.0 server, as IBM's SDKs for applications are: it registers itself, has the security
/// checks of a scope answered, and fetches access tokens.
///
/// There is one per upstream in a process: it holds what the server knows it by. Its logins run one after another.
public final class MobileFirstClient: Sendable {
    /// The upstream's name, for failures and steps.
    public let name: String
    /// The server and the application.
    public let configuration: MobileFirstConfiguration
    /// In whose name, where an upstream has several clients; empty where it has one.
    let identity: String

    let keys: any SigningKeys
    let turnstile = Turnstile()
    private let state = Mutex(State())

    private struct State {
        var registration: MobileFirstRegistration?
        var clockOffset: Int64 = 0
    }

    /// A client. `name` is the upstream's; with the application's it names the registration in the state store. The server
    /// keeps what checks were passed for each client, so that every `identity` at an upstream needs one of its own.
    public init(name: String, identity: String = "", configuration: MobileFirstConfiguration, keys: any SigningKeys) {
        self.name = name
        self.identity = identity
        self.configuration = configuration
        self.keys = keys
    }

    /// A login for these scope words, and those that `MobileFirstConfiguration.scope(adding:)` adds. Of several
    /// handlers for one security check the first counts.
    public func login(
        scope words: some Sequence<String>, handlers: [any SecurityCheckChallengeHandler]
    ) -> any SessionLogin {
        login(scope: words, checks: handlers.map { HandledCheck($0) })
    }

    /// The same with handlers that a program may have written itself.
    package func login(scope words: some Sequence<String>, checks: [HandledCheck]) -> any SessionLogin {
        MobileFirstLogin(client: self, scope: configuration.scope(adding: words), checks: checks)
    }

    /// A login that answers `check` ahead of any challenge, as `login(check, credentials)` of IBM's clients: the check is
    /// validated anew even where it holds. `handlers` answer what the server asks after that.
    public func login(
        answering check: String, with answer: SecretJSON, handlers: [any SecurityCheckChallengeHandler]
    ) -> any SessionLogin {
        login(answering: check, with: answer, checks: handlers.map { HandledCheck($0) })
    }

    /// The same with handlers that a program may have written itself.
    package func login(
        answering check: String, with answer: SecretJSON, checks: [HandledCheck]
    ) -> any SessionLogin {
        var login = MobileFirstLogin(client: self, scope: configuration.scope(adding: [check]), checks: checks)
        login.first = (check, answer)
        return login
    }

    /// The registration in use; `nil` before the first login of this process.
    var registration: MobileFirstRegistration? {
        get { state.withLock { $0.registration } }
        set { state.withLock { $0.registration = newValue } }
    }

    /// By how many milliseconds the server's clock is ahead of ours.
    var clockOffset: Int64 { state.withLock { $0.clockOffset } }

    /// Takes the server's clock from the successes of a preauthorization.
    func synchronizeClock(_ successes: [String: JSONValue], now: Int64) {
        guard let server = successes["clockSynchronization"]?["serverTimeStamp"]?.integerValue else { return }
        let difference = server.subtractingReportingOverflow(now)
        guard !difference.overflow else { return }
        state.withLock { $0.clockOffset = difference.partialValue }
    }

    /// An assertion that this client is who it says (RFC 7523), for 60 s by the server's clock. MobileFirst counts in
    /// milliseconds there.
    func assertion(
        by registration: MobileFirstRegistration, tokenID: String?, now: Int64
    ) throws(StateError) -> JSONWebSignature {
        let issued = now.addingReportingOverflow(clockOffset)
        let issuedAt = issued.overflow ? now : issued.partialValue
        return try JSONWebSignature(
            signing: [
                "iss": .string(configuration.issuer),
                "sub": .string(registration.clientID),
                "aud": .string(configuration.audience),
                "jti": tokenID.map { .string($0) } ?? .null,
                "iat": .integer(issuedAt),
                "exp": .integer(issuedAt.addingReportingOverflow(60_000).partialValue),
            ],
            with: registration.key, clientID: registration.clientID)
    }
}
