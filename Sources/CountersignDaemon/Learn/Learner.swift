// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Glibc
internal import HTTPTypes
internal import Learning
internal import System

/// One run of `countersign learn`: look, ask, log in once, ask, be refused once.
struct Learner {
    let address: WebURL
    let authorities: String?
    /// The identity provider that may get the credential, if one is named.
    let provider: Origin?
    let recording: HARRecording?
    let credentials: LearnCredential
    let consent: Consent
    let spendsWrongAttempt: Bool

    /// Returns a configuration whose login worked. Throws a failure that names the page that defeated it.
    func run() throws -> ConfigurationBlock {
        do {
            return try learn()
        } catch let defeat as LearnDefeat {
            throw Failure("learn: \(defeat)", code: EX_UNAVAILABLE)
        }
    }

    private func learn() throws -> ConfigurationBlock {
        let found = try SiteLook(
            address: address, authorities: authorities, provider: provider, recording: recording,
            credentials: credentials
        ).run(report: report)
        let (findings, plan) = (found.findings, found.plan)
        var block = found.block
        var trial = try LoginTrial(block.lines())
        guard trial.isStarted(by: findings.asked.first) else {
            throw LearnDefeat(findings.asked.summary, "no condition was found that starts a login by this answer.")
        }
        let credential = plan.fields.isEmpty ? nil : try credentials.complete(found.stored, fields: plan.fields)
        let receiver = findings.asked.otherOrigin ?? address.origin
        guard consent.allows("Log in at \(receiver) as the credential \(credentials.name)? It is one attempt.")
        else {
            throw Failure("no attempt was allowed, so nothing was sent (--yes allows it)", code: EX_NOPERM)
        }
        if let names = found.names {
            let answers = try trial.run(credential, then: address, report: report).exchanges.map(\.response)
            let whole = names.plan(then: try names.next(in: answers))
            report("the next page asks for the password")
            block.challenge = whole.lines
            trial = try LoginTrial(block.lines())
        }
        let outcome = try trial.run(credential, then: address, report: report)
        try requireProof(outcome, trial, findings)
        try addForgeryToken(to: &block, outcome)
        if plan.hasUnknownRefusal, let credential { try learnRefusal(&block, trial, credential, outcome) }
        return block
    }

    /// Throws unless the login worked and the address shows another page with its session.
    private func requireProof(_ outcome: LoginTrial.Outcome, _ trial: LoginTrial, _ findings: SiteFindings) throws {
        switch outcome.result {
        case .failure(let failure):
            let page = outcome.exchanges.last { $0.hadBody } ?? outcome.exchanges.last
            let text = page.map { "\($0.response.method.rawValue) \($0.response.url.path): \($0.response.status)" }
            let isOfForm =
                failure.code == .rejected && LearnedKind.offeredSchemes(in: findings.asked.first).isEmpty
            let advice =
                isOfForm
                ? recording == nil
                    ? " If the password is right, a script may send the form elsewhere: record a login (--har FILE)."
                    : " If the password is right, the login needs more of the browser's request than was learned, such as its fields."
                : ""
            throw LearnDefeat(text ?? "the login", "\(failure.code.rawValue): \(failure.detail)\(advice)")
        case .success(let session):
            guard let visit = outcome.visit else {
                guard session.isVerified, !session.isEmpty else {
                    throw LearnDefeat(findings.asked.summary, "the answers do not show that the login worked")
                }
                report("the login works")
                return
            }
            report("with the session: \(visit.summary)")
            if trial.isStarted(by: visit.first) || visit.form != nil {
                throw LearnDefeat(visit.summary, "with the session of the login, the address asks for a login again")
            }
            guard visit.last.status < 400 else {
                throw LearnDefeat(visit.summary, "with the session of the login, the address is refused")
            }
            report("the login works")
            if let visit = outcome.callersVisit, trial.isStarted(by: visit.first) || visit.form != nil {
                report(
                    "the server binds the session to the User-Agent of its login. The daemon notices that, and sends callers' "
                        + "requests under the login's")
            }
        }
    }

    /// Adds the field against forged requests whose value is in the session's cookies.
    private func addForgeryToken(to block: inout ConfigurationBlock, _ outcome: LoginTrial.Outcome) throws {
        guard case .success(let session) = outcome.result, let cookies = session.cookies?.snapshot.names,
            !block.challenge.contains(where: { $0.text.hasPrefix("inject:") }),
            let line = ForgeryToken.line(for: cookies)
        else { return }
        block.challenge.append(line)
        // The line changes no login, so only the configuration is checked again.
        _ = try LoginTrial(block.lines())
    }

    private func learnRefusal(
        _ block: inout ConfigurationBlock, _ trial: LoginTrial, _ credential: Credential, _ right: LoginTrial.Outcome
    ) throws {
        guard spendsWrongAttempt, let wrong = LearnCredential.falsified(credential),
            consent.allows("Send one wrong password, to learn how the server refuses it? It counts as an attempt.")
        else {
            report("how the server refuses a wrong password is not known; it was not tried")
            return
        }
        let refused = try trial.run(wrong, then: address, report: report)
        if case .failure(let failure) = refused.result, [.rejected, .accountLocked].contains(failure.code) {
            report("a wrong password is recognised")
            return
        }
        let answers = (right.exchanges.last { $0.hadBody }, refused.exchanges.last { $0.hadBody })
        guard let accepted = answers.0?.response, let rejected = answers.1?.response,
            let line = RefusalDifference(accepted: accepted, rejected: rejected).line
        else {
            throw LearnDefeat(
                "the answer to a wrong password",
                "it does not differ from the answer to the right one, so the daemon would accept every password. Set "
                    + "`success` and `failed`.")
        }
        block.challenge.append(line)
        report("a wrong password is recognised by `failed`")
    }

    private var report: @Sendable (String) -> Void { { Process.printError($0) } }
}

/// Permission to spend an attempt: by a flag, or by a person at the terminal.
struct Consent {
    /// True if every question is answered with yes.
    let isGiven: Bool

    /// Returns whether the answer to `question` is yes. Without a terminal nothing is spent.
    func allows(_ question: String) -> Bool { isGiven || Self.ask(question) }

    private static func ask(_ question: String) -> Bool {
        guard let terminal = try? Descriptor(opening: "/dev/tty", O_RDWR) else { return false }
        guard (try? terminal.writeAll(Array("\(question.harmless) [y/N] ".utf8))) != nil else { return false }
        // A terminal gives one line at a time.
        guard let answer = try? DescriptorIO.read(from: terminal.number, atMost: 256) else { return false }
        let word = String(decoding: answer, as: UTF8.self).lowercased().prefix { $0.isLetter }
        return word == "y" || word == "yes"
    }
}
