// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Passes the security checks that a resource names itself: at an address for answers (`answer-url`, `…/authenticate` of the
/// composite dialect), or by a GET of the resource with the answers in `Authorization`.
///
/// The original clients of Worklight 6.x and MobileFirst 7.x send the challenged request itself with the answers. Servers then
/// carry it out or tell of the login in its place, and nothing says which; so here no answer rides on an unsafe request, and
/// the caller's own is sent once, after the login (RFC 9110 §9.2.1).
///
/// Its session is the cookies that the server sets meanwhile, and in the composite dialect the value that `WL-Instance-Id` is to
/// carry.
public struct ResourceCheckLogin: SessionLogin {
    /// So many times the server may challenge in one login.
    private static let rounds = 8
    /// Longer answers do not go into a field; the servers' own scripts have that number.
    private static let longestField = 900

    private let name: String
    private let checks: [HandledCheck]
    private let answerURL: WebURL?
    private let address: WebURL
    private let challenge: ExaminedResponse?
    private let target: WebURL?

    /// A login for `challenge`; without one, `address` is asked for the challenge first, or `target`, the address of a request that
    /// waits. `name` stands in failures that belong to no single check. `answerURL` is where answers go.
    public init(
        name: String, handlers: [any SecurityCheckChallengeHandler], answerURL: WebURL?, address: WebURL,
        challenge: ExaminedResponse?, target: WebURL? = nil
    ) {
        self.init(
            name: name, checks: handlers.map { HandledCheck($0) }, answerURL: answerURL, address: address,
            challenge: challenge, target: target)
    }

    /// The same with handlers under names of the configuration.
    init(
        name: String, checks: [HandledCheck], answerURL: WebURL?, address: WebURL, challenge: ExaminedResponse?,
        target: WebURL?
    ) {
        self.name = name
        self.checks = checks
        self.answerURL = answerURL
        self.address = address
        let occasion = LoginOccasion(challenge: challenge, target: target)
        self.challenge = occasion.challenge
        self.target = occasion.target
    }

    /// Wins a session, or says why not.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let place = challenge?.url ?? target ?? address
        var talk = Talk(login: self, url: place, conversation: conversation)
        var response: SideResponse
        if let challenge {
            response = SideResponse(status: challenge.status, fields: challenge.fields, body: challenge.body ?? [])
        } else if target != nil {
            guard let found = try await talk.look() else {
                return .nothingAsked(at: place, now: conversation.now(), isBrief: true)
            }
            response = found
            let examined = ExaminedResponse(
                status: found.status, fields: found.fields, body: found.body, url: place)
            let detector = ResourceCheckDetector(checks: checks.map(\.securityCheck))
            guard detector.examine(examined, hasSession: false) == .challenged() else {
                talk.report("no challenge that this answers, so there is nothing to add yet")
                return .nothingAsked(at: place, now: conversation.now())
            }
        } else {
            response = try await talk.send(SideRequest(method: .get, url: address), "GET \(address.path)")
        }
        talk.keep(response)
        var dialogue = SecurityCheckDialogue(
            name: name,
            handlers: checks + [
                HandledCheck(
                    DeviceRealmHandler(challengeName: name, application: Self.application(in: talk.url.path)))
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
                if !talk.wasChallenged, (200...299).contains(response.status) {
                    talk.report("no challenge, so there is nothing to add yet")
                    return Session()
                }
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
        /// True if the server has challenged in this login.
        private(set) var wasChallenged = false
        /// Whether the answers went to the challenged address itself.
        private var hasAnsweredRealms = false
        /// True if the address that takes answers in a body is not there.
        private var lacksAddress = false

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
            wasChallenged = true
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
                let fits = answers.text.count <= ResourceCheckLogin.longestField
                if let address = login.answerURL ?? (fits && (lacksAddress || isSafe) ? nil : authenticate) {
                    var request = SideRequest.json(.post, address, answers)
                    request.fields[.authorization] = "wl-authorization-in-body"
                    let response = try await send(request, "POST \(address.path)")
                    guard login.answerURL == nil, fits, [404, 405, 501].contains(response.status) else {
                        return response
                    }
                    lacksAddress = true
                }
                guard login.answerURL == nil, fits else { throw addressMissing }
                hasAnsweredRealms = true
                var request = SideRequest(method: .get, url: url)
                if answers.text.count > 2 { request.fields[.authorization] = answers.text.revealText() }
                return try await send(request, "GET \(url.path) with the answers")
            }
        }

        /// True if the challenged request was safe, so that its address may be asked for as it came (RFC 9110 §9.2.1).
        private var isSafe: Bool { login.challenge.map { $0.method == .get || $0.method == .head } ?? false }

        /// Asks for the address of a request that waits; `nil` if the server is in trouble, which the request itself will be told.
        func look() async throws(LoginFailure) -> SideResponse? {
            let step = "GET \(url.path)"
            do throws(SideRequestError) {
                var request = SideRequest(method: .get, url: url)
                request.isLook = true
                let response = try await conversation.sideRequests.send(request)
                report("\(step): \(response.status)")
                return response.status >= 500 || response.status == 429 ? nil : response
            } catch {
                report("\(step): no answer, \(error.reason)")
                switch error.kind {
                case .badAnswer, .tls, .unreachable: return nil
                case .guarded, .originNotAllowed, .timedOut:
                    throw LoginFailure(error, step: step, challenge: login.name)
                }
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

        func report(_ text: String) {
            conversation.report(ConversationStep(challenge: login.name, text: text))
        }
    }
}
