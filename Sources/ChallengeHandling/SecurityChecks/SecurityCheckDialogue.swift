// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// The security checks of one conversation, their answers, and the outcomes.
///
/// It is independent of the wire dialect. The driver passes in the server's messages; the dialogue asks the handlers,
/// closes latches, and decides how a login ends.
package struct SecurityCheckDialogue {
    /// An answer of a handler.
    private struct Given {
        enum Outcome {
            case accepted
            case pending
            case rejected(LoginFailure)
        }

        let use: CredentialUse?
        /// The answer, if it is a program's own and made of no stored credential.
        let own: Secret?
        var outcome = Outcome.pending

        var isPending: Bool { if case .pending = outcome { true } else { false } }
    }

    /// The name for failures and steps that belong to no single challenge: the upstream, for a MobileFirst client.
    private let name: String
    private let handlers: [String: HandledCheck]
    private let conversation: Conversation
    private var given: [String: Given] = [:]

    /// Creates a dialogue without answers. Of several handlers for one check the first counts.
    package init(name: String, handlers: [HandledCheck], conversation: Conversation) {
        self.name = name
        self.handlers = Dictionary(handlers.map { ($0.securityCheck, $0) }, uniquingKeysWith: { first, _ in first })
        self.conversation = conversation
    }

    /// Records that `answer` to `check` is sent before any challenge of this conversation.
    package mutating func gave(_ answer: SecretJSON, to check: String) {
        given[check] = Given(use: nil, own: handlers[check]?.own(answer))
        report(check, "answer: given for \(ServerText.name(check)) before a challenge")
    }

    /// Records that the server names these checks as passed.
    package mutating func succeeded(_ successes: [String: JSONValue]) async {
        for (check, success) in successes.sorted(by: { $0.key < $1.key }) {
            await accept(check)
            await handlers[check]?.succeeded(success)
        }
    }

    /// Records that the server asks for nothing more: it has accepted all answers.
    package mutating func passed() async {
        for check in given.keys.sorted() where isPending(check) { await accept(check) }
    }

    /// Records that the server began another session before it judged the latest answers.
    ///
    /// A value that was accepted before is then submitted again: its session may have ended on the way. Its record of
    /// acceptance is withdrawn, so the next challenge counts as a rejection. Answers with other values count already.
    package mutating func sessionBeganAnew() async {
        for (check, given) in given.sorted(by: { $0.key < $1.key }) where given.isPending {
            guard let use = given.use, use.acceptance(in: conversation) != nil else { continue }
            await use.withdrawAcceptance(in: conversation)
            self.given[check] = nil
            report(check, "the server's session ended before the answer counted: it is sent again")
        }
    }

    /// Returns the answers to these checks, an object by check. Throws as soon as one handler does not answer; then
    /// nothing may be sent.
    ///
    /// `serverWait` is the time until which the server asks to wait (`Retry-After`), if it does.
    package mutating func answers(
        to challenges: [String: JSONValue], serverWait: Int64? = nil
    ) async throws(LoginFailure) -> SecretJSON {
        let challenges = challenges.sorted { $0.key < $1.key }
        await settleRejections(challenges.map(\.key), serverWait: serverWait)
        if let unknown = challenges.first(where: { handlers[$0.key] == nil })?.key {
            let check = ServerText.name(unknown)
            throw LoginFailure(
                .failed, challenge: name,
                detail:
                    "The server demands the security check \"\(check)\", and no challenge is configured for it. Add "
                    + "one with `security-check: \(check)`.")
        }
        var answers: [String: SecretJSON] = [:]
        var news: [(check: String, use: CredentialUse?, own: Secret?)] = []
        // Checks with a wrong answer come first: they end most conversations.
        for (check, value) in challenges.filter({ given[$0.key] != nil }) + challenges.filter({ given[$0.key] == nil })
        {
            guard let handler = handlers[check] else { continue }
            let challenge = SecurityCheckChallenge(
                securityCheck: check, value: value, previousAnswer: previousAnswer(to: check),
                conversation: conversation)
            let (answer, use) = try await handler.answer(to: challenge)
            answers[check] = answer
            news.append((check, use, handler.own(answer, use)))
        }
        // Checked again for all: a program's handler may not have checked, and time has passed.
        for new in news { try new.use?.requireOpenLatch(in: conversation) }
        for new in news {
            given[new.check] = Given(use: new.use, own: new.own)
            let credential = new.use.map { " from the credential \($0.key.credential)" } ?? ""
            report(new.check, "answer: given for \(ServerText.name(new.check))\(credential)")
        }
        return SecretJSON(object: answers)
    }

    /// Closes the latches of failed checks that were answered, and returns the login's failure. Answered checks
    /// determine the failure rather than unanswered ones.
    package mutating func failed(_ failures: [String: JSONValue], serverWait: Int64? = nil) async -> LoginFailure {
        let failures = failures.sorted { $0.key < $1.key }
        let answered = failures.filter { isPending($0.key) }
        let unanswered = failures.filter { !isPending($0.key) }
        var ends: [LoginFailure] = []
        for (check, failure) in answered {
            ends.append(await reject(check, isLock(failure) ? .locked : .rejected, serverWait: serverWait))
        }
        for (check, failure) in unanswered { ends.append(refusal(check, failure, serverWait)) }
        for (check, failure) in failures { await handlers[check]?.failed(failure) }
        return ends.first
            ?? LoginFailure(
                .failed, challenge: name, detail: "The server refused the login without naming a security check.")
    }
}

extension SecurityCheckDialogue {
    /// Closes the latches of checks that challenge again after an answer. No handler has been asked before.
    private mutating func settleRejections(_ checks: [String], serverWait: Int64?) async {
        for check in checks where isPending(check) { _ = await reject(check, .rejected, serverWait: serverWait) }
    }

    private mutating func accept(_ check: String) async {
        given[check]?.outcome = .accepted
        await given[check]?.use?.accept(in: conversation)
    }

    private func isPending(_ check: String) -> Bool { given[check]?.isPending == true }

    private mutating func reject(
        _ check: String, _ reason: Latch.Reason, serverWait: Int64?
    ) async -> LoginFailure {
        let challenge = handlers[check]?.challengeName ?? name
        if let own = given[check]?.own { conversation.attempts.record(own, to: challenge, acceptedAt: nil) }
        let failure =
            await given[check]?.use?.reject(reason, serverWait: serverWait, in: conversation)
            ?? LoginFailure(
                reason == .locked ? .accountLocked : .rejected, challenge: challenge,
                detail: "The server rejected the answer to the security check \"\(ServerText.name(check))\".",
                retryAt: serverWait)
        given[check]?.outcome = .rejected(failure)
        return failure
    }

    private func previousAnswer(to check: String) -> SecurityCheckChallenge.PreviousAnswer {
        switch given[check]?.outcome {
        case nil: .notGiven
        // Pending answers are settled before any handler is asked.
        case .accepted, .pending: .accepted
        case .rejected(let failure): .rejected(failure)
        }
    }

    /// Returns the failure of a check that was not answered now: it says nothing about the credential, so no latch
    /// closes.
    private func refusal(_ check: String, _ failure: JSONValue, _ serverWait: Int64?) -> LoginFailure {
        let challenge = handlers[check]?.challengeName ?? name
        if check == ApplicationNoticeHandler.check {
            // The check fails if the administrator has disabled the application.
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

    private func report(_ check: String, _ text: String) {
        conversation.report(ConversationStep(challenge: handlers[check]?.challengeName ?? name, text: text))
    }

    /// Returns whether a failure's text mentions a lock. The base class of IBM's checks says "Account blocked".
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
