// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// One login of a MobileFirst client: register, preauthorize (challenges and answers), authorization, token.
struct MobileFirstLogin: SessionLogin {
    let client: MobileFirstClient
    let scope: Scope
    let checks: [HandledCheck]
    /// What is answered ahead of any challenge, which has the check validated anew even where it holds.
    var first: (check: String, answer: SecretJSON)?

    /// So many times the server may challenge in one login.
    private static var rounds: Int { 8 }

    func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        try await client.turnstile.inTurn(of: client.name) { () async throws(LoginFailure) in
            try await winInTurn(conversation)
        }
    }

    private func winInTurn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
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

    /// A server that forgot this client forgot the state of every check with it; nothing that was answered has been
    /// looked at. Once per conversation it may be another client.
    private func runAgainIfUnknown(_ calls: MobileFirstCalls) async throws(MobileFirstInterruption) -> Session {
        do throws(MobileFirstInterruption) {
            return try await run(calls)
        } catch {
            guard case .unknownClient = error else { throw error }
            client.forgetRegistration(calls)
        }
        do throws(MobileFirstInterruption) {
            return try await run(calls)
        } catch {
            if case .unknownClient = error { client.forgetRegistration(calls) }
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
    /// POST preauth/v1/preauthorize, until every check of the scope has passed. The first request carries no answer: a
    /// check that holds is not answered again, and one that does not hold tells first how many attempts remain. Each
    /// further request carries the answers to the newest challenges only, as an answer to a check that has passed would
    /// have it validated anew.
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

    /// GET az/v1/authorization: the grant code stands in the redirect, which is not followed.
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
        // A fragment stands behind the query (RFC 3986 §3).
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

    /// POST az/v1/token
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
        guard response.status == 200, let token = BearerToken(response.body, sentAt: now) else {
            throw calls.unexpected(response, "token", "There is no token in it that can be used.")
        }
        calls.report("token: 200\(token.seconds.map { ", valid for \($0) s" } ?? "")")
        return token.session
    }
}
