// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Passes the security checks that a resource names itself: at an address for answers (`answer-url`), or in the composite dialect
/// of Worklight 6.x and MobileFirst 7.x by sending the request's address again with the answers in `Authorization`.
///
/// Its session is the cookies that the server sets meanwhile, and in the composite dialect the value that `WL-Instance-Id` is to
/// carry.
public struct ResourceCheckLogin: SessionLogin {
    /// So many times the server may challenge in one login.
    private static let rounds = 8
    /// Longer answers do not go into a field; the servers' own scripts have that number.
    private static let longestField = 900

    private let name: String
    private let handlers: [any SecurityCheckChallengeHandler]
    private let answerURL: WebURL?
    private let address: WebURL
    private let challenge: ExaminedResponse?

    /// A login for `challenge`; without one, `address` is asked for the challenge first. `name` stands in failures that belong to no
    /// single check. `answerURL` is where answers go.
    public init(
        name: String, handlers: [any SecurityCheckChallengeHandler], answerURL: WebURL?, address: WebURL,
        challenge: ExaminedResponse?
    ) {
        self.name = name
        self.handlers = handlers
        self.answerURL = answerURL
        self.address = address
        self.challenge = challenge
    }

    /// Wins a session, or says why not.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        var talk = Talk(login: self, url: challenge?.url ?? address, conversation: conversation)
        var response: SideResponse
        if let challenge {
            response = SideResponse(status: challenge.status, fields: challenge.fields, body: challenge.body ?? [])
        } else {
            response = try await talk.send(SideRequest(method: .get, url: address), "GET \(address.path)")
        }
        talk.keep(response)
        var dialogue = SecurityCheckDialogue(
            name: name,
            handlers: handlers + [
                DeviceRealmHandler(challengeName: name, application: Self.application(in: talk.url.path))
            ], conversation: conversation)
        for _ in 0...Self.rounds {
            let message = ResourceCheckMessage(
                status: response.status, fields: response.fields, body: response.body)
            let retryAt = Moment.retry(after: response.fields, now: conversation.now())
            await dialogue.succeeded(message?.successes ?? [:])
            if let message, !message.failures.isEmpty {
                throw await dialogue.failed(message.failures, serverWait: retryAt)
            }
            guard let message, !message.challenges.isEmpty else {
                guard talk.isPassed(response.status) else { throw talk.unexpected(response.status, retryAt) }
                return talk.session
            }
            let answers = try await dialogue.answers(to: talk.taken(message.challenges), serverWait: retryAt)
            response = try await talk.answer(answers, in: message.dialect)
            talk.keep(response)
        }
        throw LoginFailure(
            .failed, challenge: name, detail: "The server challenged \(Self.rounds + 1) times in one login.")
    }

    /// Application and environment in an address of these servers: `…/apps/services/api/APPLICATION/ENVIRONMENT/…`.
    static func application(in path: String) -> (name: String, environment: String) {
        guard let api = api(in: path) else { return ("countersign", "Linux") }
        return (api[api.endIndex - 2], api[api.endIndex - 1])
    }

    /// The segments of such an address up to its environment; `nil` where it is none.
    private static func api(in path: String) -> ArraySlice<String>? {
        let segments = path.split(separator: "/").map(String.init)
        for index in segments.indices.dropLast(4)
        where segments[index..<index + 3].elementsEqual(["apps", "services", "api"]) {
            return segments[...(index + 4)]
        }
        return nil
    }
}

extension ResourceCheckLogin {
    /// What is said to the server in one login, and what it has given meanwhile.
    private struct Talk {
        let login: ResourceCheckLogin
        let url: WebURL
        let conversation: Conversation
        private var jar = CookieJar()
        private var instance: String?
        /// Whether the answers went to the challenged address itself.
        private var hasAnsweredRealms = false

        init(login: ResourceCheckLogin, url: WebURL, conversation: Conversation) {
            self.login = login
            self.url = url
            self.conversation = conversation
        }

        var session: Session {
            var fields: [InjectedField] = []
            if let instance { fields.append(InjectedField(name: Self.instanceField, value: Secret(instance))) }
            return Session(
                fields: fields, expiresAt: jar.expiresAt, cookies: jar.isEmpty ? nil : SessionCookies(jar))
        }

        private static let instanceField = HTTPField.Name("WL-Instance-Id") ?? .from

        mutating func keep(_ response: SideResponse) {
            for value in response.fields[values: .setCookie] {
                _ = jar.store(value, from: url, now: conversation.now())
            }
        }

        /// The challenges that want an answer: that against forged requests wants its value back in a field, and no more.
        mutating func taken(_ challenges: [String: JSONValue]) -> [String: JSONValue] {
            var challenges = challenges
            if let value = challenges.removeValue(forKey: ClientRealms.antiXSRF).flatMap(ClientRealms.instance) {
                instance = value
            }
            return challenges
        }

        mutating func answer(
            _ answers: SecretJSON, in dialect: ResourceCheckMessage.Dialect
        ) async throws(LoginFailure) -> SideResponse {
            switch dialect {
            case .resource:
                guard let address = login.answerURL else { throw addressMissing }
                let body = SecretJSON(object: ["challengeResponse": answers])
                return try await send(.json(.post, address, body), "POST \(address.path)")
            case .composite:
                guard login.answerURL != nil || answers.text.count > ResourceCheckLogin.longestField else {
                    hasAnsweredRealms = true
                    // Without its body, so that it does nothing but log in.
                    var request = SideRequest(method: login.challenge?.method == .get ? .get : .post, url: url)
                    if answers.text.count > 2 { request.fields[.authorization] = answers.text.revealText() }
                    return try await send(request, "\(request.method.rawValue) \(url.path) with the answers")
                }
                guard let address = login.answerURL ?? authenticate else { throw addressMissing }
                var request = SideRequest.json(.post, address, answers)
                request.fields[.authorization] = "wl-authorization-in-body"
                return try await send(request, "POST \(address.path)")
            }
        }

        func send(_ request: SideRequest, _ step: String) async throws(LoginFailure) -> SideResponse {
            var request = request
            if let cookies = jar.header(for: request.url, now: conversation.now()) {
                request.fields[values: .cookie] = [cookies.revealText()]
            }
            if let instance { request.fields[Self.instanceField] = instance }
            let response: SideResponse
            do throws(SideRequestError) {
                response = try await conversation.sideRequests.send(request)
            } catch {
                report("\(step): no answer, \(error.reason)")
                throw LoginFailure(error, step: step, challenge: login.name)
            }
            report("\(step): \(response.status)")
            return response
        }

        /// Whether a status without a word about any check says that all have passed. Past its realms a server may well refuse a
        /// request that came without its body.
        func isPassed(_ status: Int) -> Bool {
            if (200...299).contains(status) { return true }
            return hasAnsweredRealms && (400...499).contains(status) && ![401, 403, 407, 408, 429].contains(status)
        }

        func unexpected(_ status: Int, _ retryAt: Int64?) -> LoginFailure {
            LoginFailure(
                .failed, challenge: login.name,
                detail:
                    "The server answered the login with status \(status), which says nothing of its security checks.",
                retryAt: retryAt)
        }

        /// Where answers go that are too long for a field.
        private var authenticate: WebURL? {
            ResourceCheckLogin.api(in: url.path).map { api in
                WebURL(origin: url.origin, path: "/" + (api + ["authenticate"]).joined(separator: "/"))
            }
        }

        private var addressMissing: LoginFailure {
            LoginFailure(
                .failed, challenge: login.name,
                detail:
                    "The answer has nowhere to go. Set `answer-url` of the challenge to the address that takes answers."
            )
        }

        private func report(_ text: String) {
            conversation.report(ConversationStep(challenge: login.name, text: text))
        }
    }
}
