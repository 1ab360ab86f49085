// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FieldBytes
internal import HTTPTypes
internal import Secrets

/// Login for security checks that a resource names itself. Answers go to an address for answers (`answer-url`,
/// `…/authenticate` of the composite dialect), or in `Authorization` of a GET of the resource.
///
/// The original clients of Worklight 6.x and MobileFirst 7.x send the challenged request itself with the answers.
/// Servers then either execute it or answer about the login instead, and the client cannot know which. So here no
/// answer is sent with an unsafe request, and the caller's own request is sent once, after the login (RFC 9110 §9.2.1).
///
/// Its session consists of the cookies that the server sets meanwhile, and in the composite dialect of the value for
/// `WL-Instance-Id`.
public struct ResourceCheckLogin: SessionLogin {
    /// The number of challenges allowed in one login.
    private static let rounds = 8
    /// Longer answers do not go into a field. The limit is that of the servers' own scripts.
    private static let longestField = 900

    private let name: String
    private let checks: [HandledCheck]
    private let answerURL: WebURL?
    private let address: WebURL
    private let challenge: ExaminedResponse?
    private let target: WebURL?
    private let isShared: Bool

    /// Creates a login for `challenge`. Without one, `address` is asked for the challenge first, or `target`, the
    /// address of a waiting request. If `isShared`, another node may have used an attempt since the challenge was sent:
    /// its address is asked again. `name` is used in failures that belong to no single check. Answers go to `answerURL`.
    public init(
        name: String, handlers: [any SecurityCheckChallengeHandler], answerURL: WebURL?, address: WebURL,
        challenge: ExaminedResponse?, target: WebURL? = nil, isShared: Bool = false
    ) {
        self.init(
            name: name, checks: handlers.map { HandledCheck($0) }, answerURL: answerURL, address: address,
            challenge: challenge, target: target, isShared: isShared)
    }

    /// Creates a login with handlers under their configured names.
    init(
        name: String, checks: [HandledCheck], answerURL: WebURL?, address: WebURL, challenge: ExaminedResponse?,
        target: WebURL?, isShared: Bool
    ) {
        self.name = name
        self.checks = checks
        self.answerURL = answerURL
        self.address = address
        let occasion = LoginOccasion(challenge: challenge, target: target)
        self.challenge = occasion.challenge
        self.target = occasion.target
        self.isShared = isShared
    }

    /// Answers challenges until all checks have passed, and returns the session.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let place = challenge?.url ?? target ?? address
        var client = Client(login: self, url: place, conversation: conversation)
        var response: SideResponse
        if let challenge {
            response = SideResponse(status: challenge.status, fields: challenge.fields, body: challenge.body ?? [])
            if isShared, let latest = try await client.fetchResource(), isChallenge(latest, at: place) {
                response = latest
            }
        } else if target != nil {
            guard let found = try await client.fetchResource() else {
                return .nothingAsked(at: place, now: conversation.now(), isBrief: true)
            }
            response = found
            guard isChallenge(found, at: place) else {
                client.report("no challenge that this answers, so there is nothing to add yet")
                return .nothingAsked(at: place, now: conversation.now())
            }
        } else {
            response = try await client.send(SideRequest(method: .get, url: address), "GET \(address.path)")
        }
        client.storeCookies(of: response)
        var dialogue = SecurityCheckDialogue(
            name: name,
            handlers: checks + [
                HandledCheck(
                    DeviceRealmHandler(challengeName: name, application: Self.application(in: client.url.path)))
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
                if !client.wasChallenged, (200...299).contains(response.status) {
                    client.report("no challenge, so there is nothing to add yet")
                    return Session()
                }
                guard client.isPassed(response.status) else { throw client.unexpected(response.status, retryAt) }
                await dialogue.passed()
                return client.session
            }
            let (pending, isNewSession) = client.pendingChallenges(in: message.challenges)
            if isNewSession { await dialogue.sessionBeganAnew() }
            let answers = try await dialogue.answers(to: pending, serverWait: retryAt)
            response = try await client.answer(answers, in: message.dialect)
            client.storeCookies(of: response)
        }
        throw LoginFailure(
            .failed, challenge: name, detail: "The server challenged \(Self.rounds + 1) times in one login.")
    }

    private func isChallenge(_ response: SideResponse, at url: WebURL) -> Bool {
        let examined = ExaminedResponse(
            status: response.status, fields: response.fields, body: response.body, url: url)
        let detector = ResourceCheckDetector(checks: checks.map(\.securityCheck))
        return detector.examine(examined, hasSession: false) == .challenged()
    }

    /// Returns application and environment in an address of these servers:
    /// `…/apps/services/api/APPLICATION/ENVIRONMENT/…`.
    static func application(in path: String) -> (name: String, environment: String) {
        guard let api = api(in: path) else { return ("countersign", "Linux") }
        return (api[api.endIndex - 2], api[api.endIndex - 1])
    }

    /// Returns the segments of such an address up to its environment; `nil` for other addresses.
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
    /// The requests of one login, with the cookies and values that they return.
    private struct Client {
        let login: ResourceCheckLogin
        let url: WebURL
        let conversation: Conversation
        private var jar = CookieJar()
        private var instance: String?
        /// True if the server has sent a challenge in this login.
        private(set) var wasChallenged = false
        /// True if the answers went to the challenged address itself.
        private var hasAnsweredRealms = false
        /// True if the address for answers in a body does not exist.
        private var lacksAuthenticateAddress = false

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

        private static let instanceField = HTTPField.Name(literal: "WL-Instance-Id")

        mutating func storeCookies(of response: SideResponse) {
            for value in response.fields.bytes(of: .setCookie) {
                _ = jar.store(value, from: url, now: conversation.now())
            }
        }

        /// Returns the challenges that need an answer, and whether they belong to another session of the server than the
        /// ones before. The anti-XSRF realm only needs its value in a field; each session has its own.
        mutating func pendingChallenges(
            in challenges: [String: JSONValue]
        ) -> (pending: [String: JSONValue], isNewSession: Bool) {
            wasChallenged = true
            var challenges = challenges
            guard let value = challenges.removeValue(forKey: ClientRealms.antiXSRF).flatMap(ClientRealms.instance)
            else { return (challenges, false) }
            let isNew = instance != nil && instance != value
            instance = value
            return (challenges, isNew)
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
                if let address = login.answerURL ?? (fits && (lacksAuthenticateAddress || isSafe) ? nil : authenticate)
                {
                    var request = SideRequest.json(.post, address, answers)
                    request.fields[.authorization] = "wl-authorization-in-body"
                    let response = try await send(request, "POST \(address.path)")
                    guard login.answerURL == nil, fits, [404, 405, 501].contains(response.status) else {
                        return response
                    }
                    lacksAuthenticateAddress = true
                }
                guard login.answerURL == nil, fits else { throw addressMissing }
                hasAnsweredRealms = true
                var request = SideRequest(method: .get, url: url)
                if answers.text.count > 2 { request.fields[.authorization] = answers.text.revealText() }
                return try await send(request, "GET \(url.path) with the answers")
            }
        }

        /// True if the challenged request was safe (RFC 9110 §9.2.1). Its address may then be requested unchanged.
        private var isSafe: Bool { login.challenge?.method.isRetrieval ?? false }

        /// Requests the address of a waiting or challenged request. `nil` if the server is in trouble, which the request
        /// itself will report.
        func fetchResource() async throws(LoginFailure) -> SideResponse? {
            let step = "GET \(url.path)"
            do throws(SideRequestError) {
                var request = SideRequest(method: .get, url: url)
                request.allowsPartialBody = true
                let response = try await conversation.sideRequests.send(request)
                report("\(step): \(response.status)")
                return InconclusiveStatus.contains(response.status) ? nil : response
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
                request.fields.set(.cookie, to: cookies.revealBytes())
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

        /// Returns whether a status without any check means that all have passed. After its realms have passed, a
        /// server may still refuse a request that lacks its body.
        func isPassed(_ status: Int) -> Bool {
            if (200...299).contains(status) { return true }
            return hasAnsweredRealms && status >= 400 && !InconclusiveStatus.contains(status)
                && ![401, 403, 407].contains(status)
        }

        func unexpected(_ status: Int, _ retryAt: Int64?) -> LoginFailure {
            LoginFailure(
                .failed, challenge: login.name,
                detail:
                    "The server answered the login with status \(status), which says nothing about its security checks.",
                retryAt: retryAt)
        }

        /// The address for answers that are too long for a field.
        private var authenticate: WebURL? {
            ResourceCheckLogin.api(in: url.path).map { api in
                WebURL(origin: url.origin, path: "/" + (api + ["authenticate"]).joined(separator: "/"))
            }
        }

        private var addressMissing: LoginFailure {
            LoginFailure(
                .failed, challenge: login.name,
                detail:
                    "There is no address for the answer. Set `answer-url` of the challenge to the one that accepts answers."
            )
        }

        func report(_ text: String) {
            conversation.report(ConversationStep(challenge: login.name, text: text))
        }
    }
}
