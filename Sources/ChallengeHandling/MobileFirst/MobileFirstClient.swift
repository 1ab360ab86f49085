// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Synchronization

/// Client of one MobileFirst 8.0 server, like IBM's SDKs for applications. It registers itself, has the security checks
/// of a scope answered, and fetches access tokens.
///
/// There is one per upstream in a process, with its own identity at the server. Its logins run one after another.
public final class MobileFirstClient: Sendable {
    /// The upstream's name, for failures and steps.
    public let name: String
    /// The server and the application.
    public let configuration: MobileFirstConfiguration
    /// The identity, if an upstream has several clients; otherwise empty.
    let identity: String

    let keys: any SigningKeys
    /// Serializes logins. A check's state belongs to the client at the server, so two logins at once would both be
    /// challenged, both answer, and send a wrong PIN twice.
    let mutex = AsyncMutex()
    private let state = Mutex(State())

    private struct State {
        var registration: MobileFirstRegistration?
        var clockOffset: Int64 = 0
    }

    /// Creates a client. `name` is the upstream's name; together with the application's it names the registration in
    /// the state store. The server stores passed checks by client, so every `identity` at an upstream needs a separate
    /// client.
    public init(name: String, identity: String = "", configuration: MobileFirstConfiguration, keys: any SigningKeys) {
        self.name = name
        self.identity = identity
        self.configuration = configuration
        self.keys = keys
    }

    /// Returns a login for these scope words and those that `MobileFirstConfiguration.scope(adding:)` adds. If several
    /// handlers are given for one security check, the first is used.
    public func login(
        scope words: some Sequence<String>, handlers: [any SecurityCheckChallengeHandler]
    ) -> any SessionLogin {
        login(scope: words, checks: handlers.map { HandledCheck($0) })
    }

    /// Returns a login with handlers that a program may have written.
    package func login(scope words: some Sequence<String>, checks: [HandledCheck]) -> any SessionLogin {
        MobileFirstLogin(client: self, scope: configuration.scope(adding: words), checks: checks)
    }

    /// Returns a login that answers `check` before any challenge, as `login(check, credentials)` of IBM's clients. The
    /// check is validated again even if it has passed. `handlers` answer the server's later challenges.
    public func login(
        answering check: String, with answer: SecretJSON, handlers: [any SecurityCheckChallengeHandler]
    ) -> any SessionLogin {
        login(answering: check, with: answer, checks: handlers.map { HandledCheck($0) })
    }

    /// Returns a login that answers `check` first, with handlers that a program may have written.
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

    /// Server's clock minus this machine's, in milliseconds.
    var clockOffset: Int64 { state.withLock { $0.clockOffset } }

    /// Adopts the server's clock from the successes of a preauthorization.
    func synchronizeClock(_ successes: [String: JSONValue], now: Int64) {
        guard let server = successes["clockSynchronization"]?["serverTimeStamp"]?.integerValue else { return }
        let difference = server.subtractingReportingOverflow(now)
        guard !difference.overflow else { return }
        state.withLock { $0.clockOffset = difference.partialValue }
    }

    /// Returns a client assertion (RFC 7523), valid for 60 s by the server's clock. MobileFirst counts in milliseconds
    /// there.
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

extension MobileFirstClient {
    /// Returns the registration to use: the one in memory, the stored one, or a new one. A stored registration for
    /// another configuration is updated if only the version differs, else replaced.
    func currentRegistration(_ calls: MobileFirstCalls) async throws(MobileFirstInterruption) -> MobileFirstRegistration
    {
        if let registration { return registration }
        let result: MobileFirstRegistration
        if let kept = await loadKept(calls) {
            switch kept.fitness(for: configuration) {
            case .current:
                registration = kept
                return kept
            case .outdated: result = try await update(kept, calls)
            case .other: result = try await register(calls)
            }
        } else {
            result = try await register(calls)
        }
        registration = result
        await keep(result, calls)
        return result
    }

    /// Removes the registration, unknown to the server, from memory and the state store.
    func forgetRegistration(_ calls: MobileFirstCalls) async {
        registration = nil
        do {
            try await calls.conversation.state.remove(stateName)
        } catch {
            // The stored registration is tried again after a restart, and found to be unknown again.
            calls.report("register: the old registration could not be removed, \(error.reason)")
        }
    }

    private var stateName: String {
        MobileFirstRegistration.stateName(
            upstream: name, application: configuration.application, identity: identity)
    }

    func loadKept(_ calls: MobileFirstCalls) async -> MobileFirstRegistration? {
        do {
            guard let kept = try await calls.conversation.state.load(stateName) else { return nil }
            let registration = MobileFirstRegistration(kept: kept, keys: keys)
            if registration == nil { calls.report("register: the kept registration cannot be used") }
            return registration
        } catch {
            calls.report("register: the kept registration cannot be read, \(error.reason)")
            return nil
        }
    }

    /// Stores a registration. If that fails, the registration still serves this process.
    private func keep(_ registration: MobileFirstRegistration, _ calls: MobileFirstCalls) async {
        do {
            try await calls.conversation.state.save(registration.kept, as: stateName)
        } catch {
            calls.report("register: the registration could not be kept, \(error.reason)")
        }
    }
}

extension MobileFirstClient {
    /// Registers a client: POST registration/v1/self.
    private func register(_ calls: MobileFirstCalls) async throws(MobileFirstInterruption) -> MobileFirstRegistration {
        let key: any SigningKey
        let body: SecretJSON
        do {
            key = try await keys.generate()
            body = try registrationBody(key: key, clientID: nil)
        } catch {
            throw .failed(calls.failure(error.reason))
        }
        let url = configuration.api.appending(path: "registration/v1/self")
        let response = try await calls.send(.json(.post, url, body), "register")
        guard response.status == 201 || response.status == 200 else { throw refused(response, calls) }
        guard let clientID = Self.clientID(response) else {
            throw calls.unexpected(response, "register", "The answer names no client.")
        }
        calls.report("register: \(response.status), registered as \(configuration.issuer)")
        return MobileFirstRegistration(clientID: clientID, key: key, configuration: configuration)
    }

    /// Updates a registration: PUT registration/v1/self/{clientId}. A client that the server refuses is registered
    /// again, as Android does on `Invalid request.`
    private func update(
        _ kept: MobileFirstRegistration, _ calls: MobileFirstCalls
    ) async throws(MobileFirstInterruption) -> MobileFirstRegistration {
        let body: SecretJSON
        do {
            body = try registrationBody(key: kept.key, clientID: kept.clientID)
        } catch {
            throw .failed(calls.failure(error.reason))
        }
        let url = configuration.api.appending(
            path: "registration/v1/self/\(FormEncoding.percentEncoded(kept.clientID))")
        do {
            let response = try await calls.send(.json(.put, url, body), "update registration")
            calls.report("update registration: \(response.status)")
            if response.status == 200 || response.status == 201 {
                return MobileFirstRegistration(clientID: kept.clientID, key: kept.key, configuration: configuration)
            }
        } catch .unknownClient {
            // The step has reported the error. Registration follows.
        } catch {
            throw error
        }
        return try await register(calls)
    }

    private func registrationBody(key: any SigningKey, clientID: String?) throws(StateError) -> SecretJSON {
        let signature = try JSONWebSignature(
            signing: MobileFirstRegistration.payload(for: configuration, key: key), with: key, clientID: clientID)
        return SecretJSON(["signedRegistrationData": signature.parts])
    }

    private func refused(_ response: SideResponse, _ calls: MobileFirstCalls) -> MobileFirstInterruption {
        switch response.status {
        case 400, 404:
            return calls.unexpected(
                response, "register",
                "Check that the application \"\(configuration.application)\" with platform "
                    + "\"\(configuration.platform.rawValue)\" and version \"\(configuration.version)\" is registered there."
            )
        case 401, 403:
            calls.report("register: \(response.status)")
            return .failed(
                calls.failure(
                    "The server demands proof that the application is authentic, which only IBM's own component can "
                        + "give. Have application authenticity disabled for \"\(configuration.application)\".",
                    retryAt: calls.retryAt(response)))
        default:
            return calls.unexpected(response, "register")
        }
    }

    /// Returns the last segment of `Location: /mfp/api/registration/clients/<clientId>`.
    private static func clientID(_ response: SideResponse) -> String? {
        guard let location = response.fields[.location] else { return nil }
        let path = location.prefix { $0 != "?" && $0 != "#" }
        guard let last = path.split(separator: "/").last else { return nil }
        return MobileFirstRegistration.clientID(String(last))
    }
}
