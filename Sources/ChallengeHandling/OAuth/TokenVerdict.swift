// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes

/// Verdict of a token endpoint on the credential of one request. A pure function of the response.
///
/// The server's word decides, whatever the status: GitHub refuses with 200, others with 500. Without a known word the
/// status decides.
enum TokenVerdict: Equatable {
    /// The credential is accepted.
    case accepted(TokenAnswer.Token, TokenStatement)
    /// The credential is rejected, or its account is locked.
    case rejected(Latch.Reason, TokenStatement)
    /// The scope is refused, or the client may not use this grant. The credential is not judged.
    case scopeRefused(TokenStatement)
    /// The assertion is too old or too early, or was used before. `serverTime` is the response's `Date`, in ms since
    /// 1970.
    case assertionRefused(TokenStatement, serverTime: Int64?)
    /// The request is wrong, whatever the credential.
    case ourFault(TokenStatement)
    /// The response does not judge the credential.
    case unclear(TokenStatement)

    /// Evaluates the response to a token request at `now`, in ms since 1970.
    init(_ response: SideResponse, to question: TokenQuestion, now: Int64) {
        let answer = TokenAnswer(response)
        let reader = Reader(
            status: response.status, question: question, retryAt: Moment.retry(after: response.fields, now: now),
            serverTime: response.fields[.date].flatMap { Moment.httpDate($0) })
        guard (200..<300).contains(response.status) else {
            self = reader.refusal(answer.complaint)
            return
        }
        do throws(TokenAnswer.Unusable) {
            let token = try answer.token(named: question.names, defaultSeconds: question.defaultSeconds)
            self = answer.statedComplaint.map(reader.refusal) ?? reader.acceptance(token)
        } catch {
            let isStated = answer.statedComplaint != nil
            if let complaint = answer.complaint, isStated || reader.line(for: complaint) != nil {
                self = reader.refusal(complaint)
            } else {
                self = reader.unusable(error)
            }
        }
    }

    /// The statement that decided.
    var statement: TokenStatement {
        switch self {
        case .accepted(_, let statement), .rejected(_, let statement), .scopeRefused(let statement),
            .assertionRefused(let statement, _), .ourFault(let statement), .unclear(let statement):
            statement
        }
    }

    /// The verdict in one line of a login's steps.
    var step: String {
        switch self {
        case .accepted: statement.summary
        case .rejected(.locked, _): "\(statement.summary), so the account is locked"
        case .rejected(.rejected, _): "\(statement.summary), so the credential is rejected"
        case .scopeRefused: "\(statement.summary), so the scope is refused"
        case .assertionRefused: "\(statement.summary), so the assertion is too old, too early or used"
        case .ourFault, .unclear: "\(statement.summary), which does not judge the credential"
        }
    }
}

/// What a token request sent, and what its answer may hold.
struct TokenQuestion: Sendable {
    /// Names of the member with the token, the first one preferred.
    var names = ["access_token"]
    /// The lifetime of a token without one, in seconds.
    var defaultSeconds: Int64?
    /// Parts of the request that a word may be about.
    var sent: Set<TokenWord.Sent> = []
}

/// The part of a token endpoint's answer that decided, in words without secrets.
struct TokenStatement: Equatable {
    /// Status and word, for the steps of a login.
    var summary: String
    /// One sentence, and advice for the operator where there is any.
    var sentence: String
    /// Earliest time of another request in ms since 1970, if the server named one.
    var retryAt: Int64?
}

/// The table of words, applied to one response.
private struct Reader {
    let status: Int
    let question: TokenQuestion
    let retryAt: Int64?
    let serverTime: Int64?

    func acceptance(_ token: TokenAnswer.Token) -> TokenVerdict {
        let life = token.seconds.map { ", valid for \($0) s" } ?? ""
        return .accepted(
            token, TokenStatement(summary: "\(status)\(life)", sentence: "The token endpoint gave a token."))
    }

    func unusable(_ error: TokenAnswer.Unusable) -> TokenVerdict {
        .unclear(
            TokenStatement(
                summary: "\(status), but its answer \(error.reason)",
                sentence: "The token endpoint's answer \(error.reason). Check `token.url`.", retryAt: retryAt))
    }

    func refusal(_ complaint: TokenComplaint?) -> TokenVerdict {
        guard let complaint, let line = line(for: complaint) else { return refusal(byStatusWith: complaint?.word) }
        let said = ([complaint.word] + line.phrases.map { "\"\($0)\"" } + [line.code.map { "AADSTS\($0)" }])
            .compactMap(\.self)
        func statement(_ advice: String = "") -> TokenStatement { self.statement(said, advice) }
        if line.meaning == .rejected || isOutweighed(line) {
            if isTime(complaint) { return .assertionRefused(statement(), serverTime: serverTime) }
            // A server that throttles has not looked at the secret (RFC 6585 §4).
            return status == 429 ? .unclear(statement(Self.laterAdvice)) : .rejected(.rejected, statement())
        }
        switch line.meaning {
        case .rejected, .locked: return .rejected(.locked, statement())
        case .scope(let advice): return .scopeRefused(statement(advice))
        case .assertionTime where question.sent.contains(.assertion):
            return .assertionRefused(statement(line.recipe), serverTime: serverTime)
        case .assertionTime: return .unclear(statement(Self.laterAdvice + line.recipe))
        case .person:
            return .unclear(
                statement(
                    " The credential is not rejected, but a person has to sign in or consent at the server."
                        + line.recipe))
        case .settings(let advice): return .ourFault(statement(advice + line.recipe))
        case .temporary: return .unclear(statement(Self.laterAdvice))
        }
    }

    private static let laterAdvice = " A later request tries again; if the error persists, check the server."

    private func refusal(byStatusWith word: String?) -> TokenVerdict {
        let said = [word].compactMap(\.self)
        switch status {
        // Client authentication failed (RFC 6749 §5.2).
        case 401: return .rejected(.rejected, statement(said))
        case 300..<400:
            var statement = statement(said)
            statement.sentence =
                "The token endpoint answered with a redirect (status \(status)), which is not followed with a secret. "
                + "Check `token.url`."
            return .ourFault(statement)
        case _ where InconclusiveStatus.contains(status): return .unclear(statement(said, Self.laterAdvice))
        default: return .unclear(statement(said, said.isEmpty ? " Check `token.url`." : ""))
        }
    }

    private func statement(_ said: [String], _ advice: String = "") -> TokenStatement {
        TokenStatement(
            summary: ([String(status)] + said).joined(separator: " "),
            sentence: "The token endpoint answered with status \(status)"
                + "\(said.isEmpty ? "" : " (\(said.joined(separator: ", ")))").\(advice)",
            retryAt: retryAt)
    }

    /// Returns the first line of the table that fits.
    func line(for complaint: TokenComplaint) -> TokenWord? {
        TokenWord.table.first { line in
            (line.error == nil || line.error == complaint.word)
                && (line.code.map(complaint.codes.contains) ?? true)
                && (line.sent.map(question.sent.contains) ?? true) && line.phrases.allSatisfy(complaint.says)
        }
    }

    /// Returns whether a 401 says more than the word: client authentication failed (RFC 6749 §5.2).
    private func isOutweighed(_ line: TokenWord) -> Bool {
        status == 401 && line.phrases.isEmpty && line.error.map(TokenWord.unspecific.contains) == true
    }

    /// Returns whether a rejection is about the time of the request's assertion, and not about its key.
    ///
    /// `invalid_grant` is about the assertion if nothing else was sent, or if its text says so.
    private func isTime(_ complaint: TokenComplaint) -> Bool {
        guard question.sent.contains(.assertion), TokenWord.ofAssertionTime.contains(where: complaint.says) else {
            return false
        }
        if complaint.word == "invalid_grant", question.sent.count > 1 {
            return TokenWord.ofAssertion.contains(where: complaint.says)
                && !TokenWord.ofOtherFaults.contains(where: complaint.says)
        }
        return !TokenWord.ofOtherFaults.contains(where: complaint.says)
    }
}
