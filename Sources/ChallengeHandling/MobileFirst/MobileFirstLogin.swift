// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// One login of a MobileFirst client: registration, preauthorization (challenges and answers), authorization, token.
struct MobileFirstLogin: SessionLogin {
    let client: MobileFirstClient
    let scope: Scope
    let checks: [HandledCheck]
    /// The answer sent before any challenge. It makes the server validate the check again, even if the check has
    /// passed.
    var first: (check: String, answer: SecretJSON)?

    /// The number of challenges allowed in one login.
    private static var rounds: Int { 8 }

    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        try await client.mutex.withLock(orThrow: .cancelledInQueue(client.name)) { () async throws(LoginFailure) in
            try await logInInTurn(conversation)
        }
    }

    private func logInInTurn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let calls = MobileFirstCalls(name: client.name, conversation: conversation)
        do throws(MobileFirstInterruption) {
            return try await runAgainIfUnknown(calls)
        } catch {
            let failure =
                switch error {
                case .failed(let failure): failure
                case .unknownClient:
                    calls.failure("The server does not know the client that it registered a moment ago.")
                }
            calls.report("failed: \(failure.code.rawValue)")
            throw failure
        }
    }

    /// Runs the login, and repeats it if the server does not know the client. A server that forgot the client also
    /// forgot the state of its checks, and has evaluated no answer.
    private func runAgainIfUnknown(_ calls: MobileFirstCalls) async throws(MobileFirstInterruption) -> Session {
        do throws(MobileFirstInterruption) {
            return try await run(calls)
        } catch {
            guard case .unknownClient = error else { throw error }
            await client.forgetRegistration(calls)
        }
        do throws(MobileFirstInterruption) {
            return try await run(calls)
        } catch {
            if case .unknownClient = error { await client.forgetRegistration(calls) }
            throw error
        }
    }

    private func run(_ calls: MobileFirstCalls) async throws(MobileFirstInterruption) -> Session {
        let registration = try await client.currentRegistration(calls)
        try await preauthorize(registration, calls)
        let code = try await authorize(registration, calls)
        return try await fetchToken(registration, code: code, calls)
    }
}

extension MobileFirstLogin {
    /// Sends POST preauth/v1/preauthorize until every check of the scope has passed. The first request carries no
    /// answer: a check that has passed is not answered again, and any other states first how many attempts remain. Each
    /// further request carries only the answers to the newest challenges, since an answer to a passed check would make
    /// the server validate it again.
    private func preauthorize(
        _ registration: MobileFirstRegistration, _ calls: MobileFirstCalls
    ) async throws(MobileFirstInterruption) {
        var dialogue = SecurityCheckDialogue(
            name: client.name, handlers: checks + [HandledCheck(ApplicationNoticeHandler(challengeName: client.name))],
            conversation: calls.conversation)
        var members: [String: SecretJSON] = [
            "client_id": SecretJSON(.string(registration.clientID)),
            "scope": SecretJSON(.string("\(scope)")),
        ]
        if let first {
            members["challengeResponse"] = SecretJSON(object: [first.check: first.answer])
            dialogue.gave(first.answer, to: first.check)
        }
        let url = client.configuration.api.appending(path: "preauth/v1/preauthorize")
        for _ in 0...Self.rounds {
            let response = try await calls.send(.json(.post, url, SecretJSON(object: members)), "preauthorize")
            let now = calls.conversation.now()
            let verdict = PreauthorizationVerdict(response)
            calls.report("preauthorize: \(response.status), \(verdict.summary)")
            if case .unusable = verdict { throw calls.unexpected(response, "preauthorize", verdict.remedy) }
            client.synchronizeClock(verdict.successes, now: now)
            await dialogue.succeeded(verdict.successes)
            switch verdict {
            case .unusable, .passed:
                return
            case .failed(let failures):
                throw .failed(await dialogue.failed(failures, serverWait: calls.retryAt(response)))
            case .challenged(let challenges, _):
                do {
                    members["challengeResponse"] = try await dialogue.answers(
                        to: challenges, serverWait: calls.retryAt(response))
                } catch {
                    throw .failed(error)
                }
            }
        }
        throw .failed(calls.failure("The server challenged \(Self.rounds + 1) times in one login."))
    }

    /// Sends GET az/v1/authorization. The redirect holds the grant code and is not followed.
    private func authorize(
        _ registration: MobileFirstRegistration, _ calls: MobileFirstCalls
    ) async throws(MobileFirstInterruption) -> String {
        let endpoint = client.configuration.api.appending(path: "az/v1/authorization")
        let query = FormEncoding.query([
            ("response_type", "code"), ("client_id", registration.clientID), ("scope", "\(scope)"),
            ("redirect_uri", client.configuration.redirectAddress(clientID: registration.clientID)),
        ])
        let url = WebURL(origin: endpoint.origin, path: endpoint.path, query: query)
        let response = try await calls.send(SideRequest(method: .get, url: url), "authorization")
        // A fragment follows the query (RFC 3986 §3).
        let location = response.fields[.location]?.prefix { $0 != "#" } ?? ""
        guard (300...399).contains(response.status), let question = location.firstIndex(of: "?") else {
            throw calls.unexpected(response, "authorization", "It redirects nowhere.")
        }
        let parameters = location[location.index(after: question)...]
        if let error = FormEncoding.value(of: "error", in: parameters) {
            calls.report("authorization: \(response.status), refused: \(ServerText.name(error))")
            throw .failed(
                calls.failure(
                    "The server refused the authorization (\(ServerText.name(error))): a security check may have lapsed "
                        + "meanwhile.", retryAt: calls.retryAt(response)))
        }
        guard let code = FormEncoding.value(of: "code", in: parameters), !code.isEmpty else {
            throw calls.unexpected(response, "authorization", "Its redirect carries no grant code.")
        }
        calls.report("authorization: \(response.status), grant code")
        return code
    }

    /// Sends POST az/v1/token.
    private func fetchToken(
        _ registration: MobileFirstRegistration, code: String, _ calls: MobileFirstCalls
    ) async throws(MobileFirstInterruption) -> Session {
        let now = calls.conversation.now()
        let assertion: JSONWebSignature
        do {
            assertion = try client.assertion(by: registration, tokenID: code, now: now)
        } catch {
            throw .failed(calls.failure(error.reason))
        }
        let request = SideRequest.form(
            client.configuration.api.appending(path: "az/v1/token"),
            [
                ("grant_type", Secret("authorization_code")),
                ("code", Secret(code)),
                ("client_id", Secret(registration.clientID)),
                ("redirect_uri", Secret(client.configuration.redirectAddress(clientID: registration.clientID))),
                ("client_assertion_type", Secret("urn:ietf:params:oauth:client-assertion-type:jwt-bearer")),
                ("client_assertion", Secret(assertion.compact)),
            ])
        let response = try await calls.send(request, "token")
        let verdict = TokenVerdict(response, to: TokenQuestion(), now: calls.conversation.now())
        guard response.status == 200, case .accepted(let token, _) = verdict else {
            throw calls.unexpected(response, "token", "The answer has no usable token.")
        }
        calls.report("token: \(verdict.step)")
        return Session(
            fields: [TokenPlacement().field(carrying: token.value)], expiresAt: token.expiresAt(sentAt: now))
    }
}

/// Handler of an administrator's notice to an application's users (`wl_remoteDisableRealm` with `messageType: NOTIFY`).
/// It reports the notice as a step, and acknowledges its number.
///
/// Every login includes this handler, unless another handler for the check is given.
struct ApplicationNoticeHandler: SecurityCheckChallengeHandler {
    static let check = "wl_remoteDisableRealm"

    /// The upstream's name.
    let challengeName: String

    var securityCheck: String { Self.check }

    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        let message = challenge.value["message"]?.stringValue.map(ServerText.sentence) ?? ""
        // Two in a row could go on forever.
        guard challenge.value["messageType"] == "NOTIFY", let number = challenge.value["messageId"],
            challenge.previousAnswer == .notGiven
        else {
            return .cancel(
                reason:
                    "The administrator of the server demands something of this application that cannot be answered: "
                    + message)
        }
        challenge.conversation.report(
            ConversationStep(challenge: challengeName, text: "notice of the server: \(message)"))
        return .submitChallengeAnswer(["messageId": number])
    }
}

/// Logout of a MobileFirst client from security checks (POST preauth/v1/logout), which ends its tokens.
public struct MobileFirstLogout: SessionLogout {
    private let client: MobileFirstClient
    private let securityChecks: [String]

    /// Creates a logout of these checks.
    public init(_ client: MobileFirstClient, of securityChecks: [String]) {
        self.client = client
        self.securityChecks = securityChecks
    }

    /// True: the checks belong to the client.
    public var endsAllScopes: Bool { true }

    /// Logs out of each check, even if an earlier one fails. Throws the first failure.
    public func end(_ session: Session, _ conversation: Conversation) async throws(LoginFailure) {
        var first: LoginFailure?
        for check in securityChecks {
            do throws(LoginFailure) {
                try await client.logOut(of: check, conversation)
            } catch {
                first = first ?? error
            }
        }
        if let first { throw first }
    }
}

extension MobileFirstClient {
    /// Logs this client out of one security check (POST preauth/v1/logout). All its tokens, of any scope, must be
    /// dropped afterwards, even if it throws. Without a registration nothing is sent.
    ///
    /// Throws a `LoginFailure` if the server did not answer with 200.
    public func logOut(of securityCheck: String, _ conversation: Conversation) async throws(LoginFailure) {
        try await mutex.withLock(orThrow: .cancelledInQueue(name)) { () async throws(LoginFailure) in
            try await logOutInTurn(of: securityCheck, conversation)
        }
    }

    private func logOutInTurn(of securityCheck: String, _ conversation: Conversation) async throws(LoginFailure) {
        let calls = MobileFirstCalls(name: name, conversation: conversation)
        // This process knows no registration yet for a session that was handed over.
        var known = registration
        if known == nil { known = await loadKept(calls) }
        guard let registration = known else { return }
        let assertion: JSONWebSignature
        do {
            assertion = try self.assertion(by: registration, tokenID: nil, now: conversation.now())
        } catch {
            throw calls.failure(error.reason)
        }
        let request = SideRequest.form(
            configuration.api.appending(path: "preauth/v1/logout"),
            [
                ("security_check", Secret(securityCheck)),
                ("client_assertion_type", Secret("urn:ietf:params:oauth:client-assertion-type:jwt-bearer")),
                ("client_assertion", Secret(assertion.compact)),
            ])
        do throws(MobileFirstInterruption) {
            let response = try await calls.send(request, "logout")
            guard response.status == 200 else { throw calls.unexpected(response, "logout") }
            calls.report("logout: 200")
        } catch {
            switch error {
            case .failed(let failure): throw failure
            // A client unknown to the server is logged in nowhere.
            case .unknownClient: await forgetRegistration(calls)
            }
        }
    }
}
