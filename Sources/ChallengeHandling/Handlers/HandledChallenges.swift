// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// A `ChallengeHandler` as the machinery has it: what finds its challenges, and what wins its session.
package struct HandledChallenges: Sendable {
    let handler: any ChallengeHandler
    /// What failures call it.
    package let name: String
    /// What tells its sessions from those of another registration of that name; empty where the name does.
    package let identity: String
    let caller: any HandlerCaller

    /// The challenges of `handler`, which failures call `name` and which is called by `caller`.
    package init(
        _ handler: any ChallengeHandler, name: String, identity: String = "", caller: any HandlerCaller
    ) {
        self.identity = identity
        self.handler = handler
        self.name = name
        self.caller = caller
    }

    /// The login that stands ready at `origin`, with the answers in `book`.
    package func login(at origin: Origin, book: AnswerBook) -> Authenticator {
        Authenticator(
            name: name, trigger: .detected(HandledChallengesDetector(handler: handler)), isAhead: false,
            key: SessionKey(origin: origin, challenge: name, credential: identity), credentials: [],
            makeLogin: { HandledChallengesLogin(challenges: self, book: book, met: $0.challenge, target: $0.target) })
    }
}

extension ChallengeHandler {
    /// The first of the challenges in `fields` that it can answer.
    fileprivate func firstChallenge(
        in fields: HTTPFields, at url: WebURL, isRepeated: Bool = false, _ conversation: Conversation? = nil
    ) -> ChallengeRequest? {
        SchemePlan.challenges(in: fields).lazy
            .map { ChallengeRequest(url: url, challenge: $0, isRepeated: isRepeated, conversation: conversation) }
            .first { self.canHandle($0) }
    }
}

/// Asks a handler whether it can answer a 401.
struct HandledChallengesDetector: ChallengeDetector {
    let handler: any ChallengeHandler

    var kind: String { "\(type(of: handler))" }

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard response.status == 401 else { return .pass }
        return handler.firstChallenge(in: response.fields, at: response.url) == nil ? .pass : .challenged()
    }
}

/// Has a handler answer, and makes sure by a GET of the same address that the answer is right.
struct HandledChallengesLogin: SessionLogin {
    /// So many times a handler is asked in one conversation.
    private static let rounds = 8

    let challenges: HandledChallenges
    let book: AnswerBook
    let met: ExaminedResponse?
    /// The address of the request that waits for the session before any challenge; `nil` if none does.
    let target: WebURL?

    private var name: String { challenges.name }

    func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        // Before any challenge there is nothing to answer; what is known already goes along.
        var met = met
        if met == nil { met = try await look(conversation) }
        guard let met else {
            guard let target, book.isEmpty else { return session }
            return .nothingAsked(at: target, now: conversation.now())
        }
        var request = challenges.handler.firstChallenge(in: met.fields, at: met.url, conversation)
        var spared: Secret?
        for _ in 0..<Self.rounds {
            guard let asked = request else { return session }
            let space = AnswerBook.Space(asked.challenge)
            let response = try await challenges.caller.ask(name) { [handler = challenges.handler] in
                try await handler.handle(asked)
            }
            guard let answer = response?.session else {
                // What the exchange sends again meets the challenge again, and that passes.
                conversation.report(ConversationStep(challenge: name, text: "the handler gives up"))
                book.remove(space)
                return session
            }
            let fingerprint = answer.fields.first { $0.name == .authorization }?.value
            if let fingerprint { try conversation.attempts.requireNew(fingerprint, to: name) }
            if let fingerprint, fingerprint == spared {
                conversation.report(
                    ConversationStep(challenge: name, text: "the answer is right, and not for this address"))
                return session
            }
            request = try await again(asked, answered: answer, conversation)
            guard let refused = request else {
                if let fingerprint { conversation.attempts.note(fingerprint, to: name, acceptedAt: asked.url) }
                book.enter(answer, for: space, at: met.url)
                return session
            }
            guard let fingerprint else { continue }
            if try await isAcceptedElsewhere(fingerprint, answer, refused, conversation) {
                // The handler may have another one for this address.
                spared = fingerprint
            } else {
                conversation.attempts.note(fingerprint, to: name, acceptedAt: nil)
            }
        }
        throw LoginFailure(
            .rejected, challenge: name, detail: "The server rejected \(Self.rounds) answers, one after the other.")
    }

    /// Returns whether the server still accepts an answer where it did before, so that its refusal is a matter of the one resource
    /// (CONTRIBUTING, rule 3).
    private func isAcceptedElsewhere(
        _ fingerprint: Secret, _ answer: Session, _ refused: ChallengeRequest, _ conversation: Conversation
    ) async throws(LoginFailure) -> Bool {
        guard let address = conversation.attempts.address(accepting: fingerprint, to: name),
            address != refused.url.withoutQuery
        else { return false }
        let elsewhere = ChallengeRequest(
            url: address, challenge: refused.challenge, isRepeated: true, conversation: conversation)
        let occasion = SchemeOccasion(name: name, url: address, use: nil, conversation: conversation)
        // First without: an address that has become open proves nothing.
        guard let first = try await SchemeProbe(address, occasion).ask(), first.status == 401 else { return false }
        return try await again(elsewhere, answered: answer, conversation) == nil
    }

    /// The challenge at the address of a request that waits, if nothing is known yet.
    private func look(_ conversation: Conversation) async throws(LoginFailure) -> ExaminedResponse? {
        guard let target, book.isEmpty else { return nil }
        let occasion = SchemeOccasion(name: name, url: target, use: nil, conversation: conversation)
        guard case .response(let response) = try await SchemeProbe(target, occasion, isTarget: true).look(),
            response.status == 401
        else { return nil }
        let examined = ExaminedResponse(status: 401, fields: response.fields, method: .head, url: target)
        return challenges.handler.firstChallenge(in: examined.fields, at: target) == nil ? nil : examined
    }

    private var session: Session {
        var session = Session(expiresAt: book.expiresAt)
        session.signer = book
        return session
    }

    /// The same challenge once more, where the server does not take the answer.
    private func again(
        _ asked: ChallengeRequest, answered answer: Session, _ conversation: Conversation
    ) async throws(LoginFailure) -> ChallengeRequest? {
        let occasion = SchemeOccasion(name: name, url: asked.url, use: nil, conversation: conversation)
        guard let response = try await SchemeProbe(asked.url, occasion).ask(with: answer), response.status == 401 else {
            return nil
        }
        let next = challenges.handler.firstChallenge(
            in: response.fields, at: asked.url, isRepeated: true, conversation)
        // Another space asks now: that one's turn comes with the request itself.
        guard let next, AnswerBook.Space(next.challenge) == AnswerBook.Space(asked.challenge) else { return nil }
        return next
    }
}
