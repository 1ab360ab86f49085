// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import HTTPTypes
internal import Secrets
internal import Synchronization

/// Detector and login for a `ChallengeHandler`.
package struct HandledChallenges: Sendable {
    let handler: any ChallengeHandler
    /// Name of the handler in failures.
    package let name: String
    /// Identity of the registration, to separate sessions of equal names; empty if the name is unique.
    package let identity: String
    let caller: any HandlerCaller

    /// Creates the challenges of `handler`, with its name in failures and its caller.
    package init(
        _ handler: any ChallengeHandler, name: String, identity: String = "", caller: any HandlerCaller
    ) {
        self.identity = identity
        self.handler = handler
        self.name = name
        self.caller = caller
    }

    /// Returns the authenticator for `origin`, with the answers in `answers`.
    package func login(at origin: Origin, answers: AnswerCache) -> Authenticator {
        Authenticator(
            name: name, trigger: .detected(HandledChallengesDetector(handler: handler)), isAhead: false,
            key: SessionKey(origin: origin, challenge: name, credential: identity), credentials: [],
            bindsConnections: handler.bindsConnections,
            makeLogin: {
                HandledChallengesLogin(challenges: self, answers: answers, met: $0.challenge, target: $0.target)
            })
    }
}

extension ChallengeHandler {
    /// Returns the first challenge in `fields` that the handler can answer.
    fileprivate func firstChallenge(
        in fields: HTTPFields, at url: WebURL, isRepeated: Bool = false, _ conversation: Conversation? = nil
    ) -> ChallengeRequest? {
        ChallengeList(in: fields).challenges.lazy
            .map { ChallengeRequest(url: url, challenge: $0, isRepeated: isRepeated, conversation: conversation) }
            .first { self.canHandle($0) }
    }
}

/// Detector that asks a handler if it can answer a 401.
struct HandledChallengesDetector: ChallengeDetector {
    let handler: any ChallengeHandler

    var kind: String { "\(type(of: handler))" }

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard response.status == 401 else { return .pass }
        return handler.firstChallenge(in: response.fields, at: response.url) == nil ? .pass : .challenged()
    }
}

/// Login that asks a handler, and verifies the answer with a GET of the same address.
struct HandledChallengesLogin: SessionLogin {
    /// Maximum calls of a handler in one conversation.
    private static let rounds = 8

    let challenges: HandledChallenges
    let answers: AnswerCache
    let met: ExaminedResponse?
    /// Address of the waiting request if there was no challenge; nil if no request waits.
    let target: WebURL?

    private var name: String { challenges.name }

    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        // Before any challenge there is nothing to answer; known answers are used.
        var met = met
        if met == nil { met = try await probe(conversation) }
        guard let met else {
            guard let target, answers.isEmpty else { return session }
            return .nothingAsked(at: target, now: conversation.now())
        }
        var request = challenges.handler.firstChallenge(in: met.fields, at: met.url, conversation)
        var acceptedElsewhere: Secret?
        for _ in 0..<Self.rounds {
            guard let asked = request else { return session }
            let space = AnswerCache.Space(asked.challenge)
            let response = try await challenges.caller.ask(name) { [handler = challenges.handler] in
                try await handler.handle(asked)
            }
            guard let answer = response?.session else {
                // The exchange repeats the request, meets the challenge again, and passes it on.
                conversation.report(ConversationStep(challenge: name, text: "the handler gives up"))
                answers.remove(space)
                return session
            }
            let fingerprint = answer.fields.first { $0.name == .authorization }?.value
            if let fingerprint { try conversation.attempts.requireNew(fingerprint, to: name) }
            if let fingerprint, fingerprint == acceptedElsewhere {
                conversation.report(
                    ConversationStep(challenge: name, text: "the answer is right, and not for this address"))
                return session
            }
            request = try await again(asked, answered: answer, conversation)
            guard let refused = request else {
                if let fingerprint { conversation.attempts.record(fingerprint, to: name, acceptedAt: asked.url) }
                answers.store(answer, for: space, at: met.url)
                return session
            }
            guard let fingerprint else { continue }
            if try await isAcceptedElsewhere(fingerprint, answer, refused, conversation) {
                // The handler may have a different answer for this address.
                acceptedElsewhere = fingerprint
            } else {
                conversation.attempts.record(fingerprint, to: name, acceptedAt: nil)
            }
        }
        throw LoginFailure(
            .rejected, challenge: name, detail: "The server rejected \(Self.rounds) answers, one after the other.")
    }

    /// Returns true if the server still accepts an answer at the address that accepted it before.
    ///
    /// The refusal then concerns one resource only (CONTRIBUTING, rule 3).
    private func isAcceptedElsewhere(
        _ fingerprint: Secret, _ answer: Session, _ refused: ChallengeRequest, _ conversation: Conversation
    ) async throws(LoginFailure) -> Bool {
        guard let address = conversation.attempts.address(accepting: fingerprint, to: name),
            address != refused.url.withoutQuery
        else { return false }
        let elsewhere = ChallengeRequest(
            url: address, challenge: refused.challenge, isRepeated: true, conversation: conversation)
        let occasion = SchemeOccasion(name: name, url: address, use: nil, conversation: conversation)
        // First without the answer: an address that has become open proves nothing.
        guard let first = try await SchemeProbe(address, occasion).ask(), first.status == 401 else { return false }
        return try await again(elsewhere, answered: answer, conversation) == nil
    }

    /// Returns the challenge at the address of a waiting request, if no answer is known yet.
    private func probe(_ conversation: Conversation) async throws(LoginFailure) -> ExaminedResponse? {
        guard let target, answers.isEmpty else { return nil }
        let occasion = SchemeOccasion(name: name, url: target, use: nil, conversation: conversation)
        guard
            case .response(let response) = try await SchemeProbe(target, occasion, isTarget: true)
                .askWithoutCredential(),
            response.status == 401
        else { return nil }
        let examined = ExaminedResponse(status: 401, fields: response.fields, method: .head, url: target)
        return challenges.handler.firstChallenge(in: examined.fields, at: target) == nil ? nil : examined
    }

    private var session: Session {
        var session = Session(expiresAt: answers.expiresAt)
        session.signer = answers
        return session
    }

    /// Returns the challenge again if the server refuses the answer.
    private func again(
        _ asked: ChallengeRequest, answered answer: Session, _ conversation: Conversation
    ) async throws(LoginFailure) -> ChallengeRequest? {
        let occasion = SchemeOccasion(name: name, url: asked.url, use: nil, conversation: conversation)
        guard let response = try await SchemeProbe(asked.url, occasion).ask(with: answer), response.status == 401 else {
            return nil
        }
        let next = challenges.handler.firstChallenge(
            in: response.fields, at: asked.url, isRepeated: true, conversation)
        // Another protection space asks now, and is answered with the request itself.
        guard let next, AnswerCache.Space(next.challenge) == AnswerCache.Space(asked.challenge) else { return nil }
        return next
    }
}

/// Answers of one challenge handler at one server, by protection space.
///
/// A challenge at an address covers its folder and everything below (RFC 7617 §2.2), except the paths that another
/// challenge covers.
package final class AnswerCache: RequestSigner {
    /// Scheme and realm.
    struct Space: Hashable {
        let scheme: String
        let realm: String

        init(_ challenge: AuthenticationChallenge) {
            scheme = challenge.scheme.lowercased()
            realm = challenge["realm"] ?? ""
        }
    }

    private struct State {
        var spaces = BoundedDictionary<Substring, Space>(limit: most)
        var answers = BoundedDictionary<Space, Session>(limit: most)
    }

    /// Maximum number of folders and of spaces, because servers choose them.
    private static let most = 256

    private let state = Mutex(State())

    /// Creates an empty cache.
    package init() {}

    /// Stores the answer for `space`, which covers `url`.
    func store(_ answer: Session, for space: Space, at url: WebURL) {
        state.withLock { state in
            state.spaces.store(space, for: Self.folder(url.path[...]))
            // The latest again, as its space is in use.
            state.answers.remove(space)
            state.answers.store(answer, for: space)
        }
    }

    /// Removes the answer for `space`.
    func remove(_ space: Space) { state.withLock { $0.answers.remove(space) } }

    /// True if there are no answers.
    var isEmpty: Bool { state.withLock(\.answers.entries.isEmpty) }

    /// Earliest expiry of the answers, in ms since 1970.
    var expiresAt: Int64? { state.withLock { $0.answers.entries.values.compactMap(\.expiresAt).min() } }

    private func answer(for target: String) -> Session? {
        state.withLock { state in
            var folder = Self.folder(Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") }))
            while !folder.isEmpty {
                if let space = state.spaces[folder] { return state.answers[space] }
                folder = Self.folder(folder.dropLast())
            }
            return nil
        }
    }

    /// Returns the path up to the last slash.
    private static func folder(_ path: Substring) -> Substring {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
        return path[...slash]
    }

    // MARK: Signing

    /// Field of HTTP authentication.
    package var names: [HTTPField.Name] { [.authorization] }

    /// Returns the fields of the answer for the request's protection space, if there is one.
    package func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        guard let answer = answer(for: request.target) else { return SignedFields() }
        var signed = try answer.signer?.sign(request) ?? SignedFields()
        signed.fields += answer.fields
        return signed
    }

    /// Does nothing: answers are constant, or learn by themselves.
    package func learn(status: Int, fields: HTTPFields, target: String) {}

    /// No fields.
    package var learnsFrom: [HTTPField.Name]? { [] }
}
