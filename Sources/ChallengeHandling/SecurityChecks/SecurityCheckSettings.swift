// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// `security-check`: a server-side rule, by name, and the answer to it.
package struct SecurityCheckSettings: ChallengeKind {
    /// The check's name at the server.
    package var check: String
    /// The answer.
    package var answer: AnswerTemplate
    /// The number of remaining attempts that are never used.
    package var keepAttempts: Int
    /// The address of the answer, only where the resource itself sends the challenges.
    package var answerURL: AddressReference?
    /// True if the check is logged out of where its session is not needed any more; at MobileFirst servers.
    package var logsOut = false

    /// A check and its answer.
    package init(
        check: String, answer: AnswerTemplate, keepAttempts: Int = 1, answerURL: AddressReference? = nil,
        logsOut: Bool = false
    ) {
        self.check = check
        self.answer = answer
        self.keepAttempts = keepAttempts
        self.answerURL = answerURL
        self.logsOut = logsOut
    }

    /// `security-check`.
    package static let key = "security-check"
    /// The answer, where it goes, and how often.
    package static let keys = ["answer", "keep-attempts", "answer-url", "logout"]

    /// Reads the check and its answer.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> SecurityCheckSettings? {
        let check = fields.required(key)?.word()
        let answerValue = fields.required("answer")
        if let answerValue, !answerValue.isMapping { answerValue.report("must be a mapping: { pin: \"{pin}\" }") }
        let answer = answerValue.flatMap { $0.isMapping ? $0.answer() : nil }
        let keepAttempts = fields["keep-attempts"]?.integer(in: 0...1000)
        let answerURL = fields["answer-url"]?.addressReference()
        let logsOut = fields["logout"]?.flag()
        guard let check, let answer else { return nil }
        return SecurityCheckSettings(
            check: check, answer: answer, keepAttempts: keepAttempts ?? 1, answerURL: answerURL,
            logsOut: logsOut ?? false)
    }

    /// Only where the answer names a field.
    package var needsCredential: Bool { !neededFields.isEmpty }

    /// The fields that the answer names.
    package var neededFields: Set<String> { answer.fieldNames }

    /// The address of the answer.
    package var loginAddresses: [(url: WebURL, key: String)] {
        if case .absolute(let url)? = answerURL { [(url, "answer-url")] } else { [] }
    }

    /// A check is answered once.
    package func rivals(_ other: SecurityCheckSettings) -> Bool { check == other.check }

    /// The check, its answer, and where that goes.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("security-check", check)
        terms.add("answer", json: answer.source)
        terms.add("answer-url", answerURL.map { $0.resolved(at: upstream.url).map { "\($0)" } ?? $0.text })
    }

    /// None by itself: one response may demand several checks, which are answered together.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? { nil }

    /// The answer to the check.
    package func securityCheck(
        of challenge: ChallengeSettings, at server: Origin, _ site: LoginSite
    ) -> ConfiguredCheck? {
        guard let credential = challenge.credential else { return nil }
        let handler = CredentialChallengeHandler(
            securityCheck: check,
            key: LatchKey(origin: server, challenge: challenge.name, credential: credential),
            answer: answer, keepAttempts: keepAttempts, retryRejectedAfter: challenge.retryRejected)
        return ConfiguredCheck(
            HandledCheck(handler), credential: credential, choosesByUser: challenge.credentialsByUser != nil,
            isKept: challenge.login == .atStart, logsOut: logsOut,
            answerURL: answerURL?.resolved(at: site.upstream.url), proof: challenge.proofAddress(at: site.upstream),
            refusal: challenge.isForNobody ? challenge.refusal : nil)
    }
}
