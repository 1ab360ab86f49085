// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The security checks of one conversation: which were answered, with what, and what became of it.
///
/// It is the same for every dialect of the wire. The driver hands it what the server said; it asks the handlers, closes
/// latches, and decides how a login ends.
package struct SecurityCheckDialogue {
    /// An answer that a handler gave.
    private struct Given {
        enum Outcome {
            case accepted
            case pending
            case rejected(LoginFailure)
        }

        let use: CredentialUse?
        var outcome = Outcome.pending

        var isPending: Bool { if case .pending = outcome { true } else { false } }
    }

    /// Whom failures and steps belong to where no single challenge is to blame: the upstream, for a MobileFirst client.
    private let name: String
    private let handlers: [String: any SecurityCheckChallengeHandler]
    private let conversation: Conversation
    private var given: [String: Given] = [:]

    /// A dialogue in which nothing was said yet. Of several handlers for one check the first counts.
    package init(name: String, handlers: [any SecurityCheckChallengeHandler], conversation: Conversation) {
        self.name = name
        self.handlers = Dictionary(handlers.map { ($0.securityCheck, $0) }, uniquingKeysWith: { first, _ in first })
        self.conversation = conversation
    }

    /// An answer to `check` goes out that no challenge of this conversation asked for.
    package mutating func gave(_ check: String) {
        given[check] = Given(use: nil)
        report(check, "answer: given for \(ServerText.name(check)) ahead of a challenge")
    }

    /// The server names these checks as passed.
    package mutating func succeeded(_ successes: [String: JSONValue]) async {
        for (check, success) in successes.sorted(by: { $0.key < $1.key }) {
            given[check]?.outcome = .accepted
            await handlers[check]?.handleSuccess(success)
        }
    }

    /// The server demands an answer of each of these checks. Returns the answers, an object by check, when all handlers
    /// have given theirs; throws, and nothing may be sent, as soon as one does not.
    ///
    /// `serverWait` is the moment until which the server asks to wait (`Retry-After`), where it does.
    package mutating func answers(
        to challenges: [String: JSONValue], serverWait: Int64? = nil
    ) async throws(LoginFailure) -> SecretJSON {
        let challenges = challenges.sorted { $0.key < $1.key }
        settleRejections(challenges.map(\.key), serverWait: serverWait)
        if let unknown = challenges.first(where: { handlers[$0.key] == nil })?.key {
            let check = ServerText.name(unknown)
            throw LoginFailure(
                .failed, challenge: name,
                detail:
                    "The server demands the security check \"\(check)\", and no challenge is configured for it. Add "
                    + "one with `security-check: \(check)`.")
        }
        var answers: [String: SecretJSON] = [:]
        var news: [(check: String, use: CredentialUse?)] = []
        // Those first whose answer was wrong: they end most conversations.
        for (check, value) in challenges.filter({ given[$0.key] != nil }) + challenges.filter({ given[$0.key] == nil })
        {
            guard let handler = handlers[check] else { continue }
            let (answer, use) = try await ask(handler, value)
            answers[check] = answer
            news.append((check, use))
        }
        // Once more for all: a handler written by somebody else may not have looked, and time has passed.
        for new in news { try new.use?.requireOpenLatch(in: conversation) }
        for new in news {
            given[new.check] = Given(use: new.use)
            let credential = new.use.map { " from the credential \($0.key.credential)" } ?? ""
            report(new.check, "answer: given for \(ServerText.name(new.check))\(credential)")
        }
        return SecretJSON(object: answers)
    }

    /// The server names these checks as failed for good. Closes the latches of those that were answered and returns how
    /// the login ends: what was answered tells more than what was not.
    package mutating func failed(_ failures: [String: JSONValue], serverWait: Int64? = nil) async -> LoginFailure {
        let failures = failures.sorted { $0.key < $1.key }
        let answered = failures.filter { isPending($0.key) }
        let unanswered = failures.filter { !isPending($0.key) }
        var ends: [LoginFailure] = []
        for (check, failure) in answered {
            ends.append(reject(check, isLock(failure) ? .locked : .rejected, serverWait: serverWait))
        }
        for (check, failure) in unanswered { ends.append(refusal(check, failure, serverWait)) }
        for (check, failure) in failures { await handlers[check]?.handleFailure(failure) }
        return ends.first
            ?? LoginFailure(
                .failed, challenge: name, detail: "The server refused the login without naming a security check.")
    }
}

extension SecurityCheckDialogue {
    /// A check that challenges again after our answer has rejected it. All latches close before any handler is asked.
    private mutating func settleRejections(_ checks: [String], serverWait: Int64?) {
        for check in checks where isPending(check) { _ = reject(check, .rejected, serverWait: serverWait) }
    }

    private func isPending(_ check: String) -> Bool { given[check]?.isPending == true }

    private mutating func reject(_ check: String, _ reason: Latch.Reason, serverWait: Int64?) -> LoginFailure {
        let failure =
            given[check]?.use?.reject(reason, serverWait: serverWait, in: conversation)
            ?? LoginFailure(
                reason == .locked ? .accountLocked : .rejected, challenge: handlers[check]?.challengeName ?? name,
                detail: "The server rejected the answer to the security check \"\(ServerText.name(check))\".",
                retryAt: serverWait)
        given[check]?.outcome = .rejected(failure)
        return failure
    }

    private func previousAnswer(to check: String) -> SecurityCheckChallenge.PreviousAnswer {
        switch given[check]?.outcome {
        case nil: .notGiven
        // Settled before any handler is asked.
        case .accepted, .pending: .accepted
        case .rejected(let failure): .rejected(failure)
        }
    }

    /// A failure of a check that was not answered now: it says nothing about the credential, so nothing latches.
    private func refusal(_ check: String, _ failure: JSONValue, _ serverWait: Int64?) -> LoginFailure {
        let challenge = handlers[check]?.challengeName ?? name
        if check == ApplicationNoticeHandler.check {
            // The check fails when the administrator has switched the application off.
            let text = (failure["message"] ?? failure["reason"])?.stringValue.map(ServerText.sentence)
            return LoginFailure(
                .failed, challenge: name,
                detail: "The administrator of the server has disabled this application\(text.map { ": \($0)" } ?? ".")",
                retryAt: serverWait)
        }
        let happened = isLock(failure) ? "is blocked" : "is refused"
        return LoginFailure(
            .accountLocked, challenge: challenge,
            detail: "The security check \"\(ServerText.name(check))\" \(happened) at the server before any answer, so "
                + "nothing was sent. Wait until the server's block is over, or have it lifted there.",
            retryAt: serverWait)
    }

    private func ask(
        _ handler: any SecurityCheckChallengeHandler, _ value: JSONValue
    ) async throws(LoginFailure) -> (SecretJSON, CredentialUse?) {
        let challenge = SecurityCheckChallenge(
            securityCheck: handler.securityCheck, value: value,
            previousAnswer: previousAnswer(to: handler.securityCheck), conversation: conversation)
        let answer: ChallengeAnswer
        do {
            answer = try await handler.handleChallenge(challenge)
        } catch let failure as LoginFailure {
            throw failure
        } catch {
            // A description could hold anything, a secret too; the type's name cannot.
            throw LoginFailure(
                .failed, challenge: handler.challengeName,
                detail: "The challenge handler of \"\(handler.challengeName)\" failed: \(type(of: error)).")
        }
        switch answer {
        case .cancel(let reason):
            throw LoginFailure(.failed, challenge: handler.challengeName, detail: reason, isCancelled: true)
        case .submitChallengeAnswer(let answer, let use): return (answer, use)
        }
    }

    private func report(_ check: String, _ text: String) {
        conversation.report(ConversationStep(challenge: handlers[check]?.challengeName ?? name, text: text))
    }

    /// Whether a failure's text speaks of a lock; the base class of IBM's checks says "Account blocked".
    private func isLock(_ failure: JSONValue) -> Bool {
        switch failure {
        case .string(let text):
            let text = text.lowercased()
            return ["blocked", "locked", "lockout"].contains { text.contains($0) }
        case .array(let elements):
            return elements.contains(where: isLock)
        case .object(let members):
            return members.values.contains(where: isLock)
        default:
            return false
        }
    }
}
