// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What the answers to a submitted form mean. The order is IBM's: what failed in a way that is known, then evidence of success, then
/// the login page again. A 200 is no evidence by itself.
///
/// A rejection rests on the answer itself, on the page that its redirect leads to, and on a configured address; never on one that
/// only a caller chose (CONTRIBUTING, rule 3).
struct GatewayJudge {
    let success: [ResponseMatcher]
    let failed: [FailureMatcher]
    let use: CredentialUse
    let form: GatewayForm

    /// Judges the answer to a step that is not the last, and returns the page for the next one. Its pages may look alike: only the
    /// very form of this step is the login page again.
    func proceed(
        after answer: ExaminedResponse, on visit: inout GatewayVisit
    ) async throws(LoginFailure) -> GatewayVisit.Page {
        try requireNoFailure(answer, visit)
        let isProven = try isProven(by: answer, visit)
        if !isProven {
            if answer.status == 401 { throw reject(.rejected, answer, visit, by: "its status is 401") }
            if form.isAgain(in: answer) { throw reject(.rejected, answer, visit, by: "it has the form again") }
            if let trouble = visit.trouble(in: answer, "form") { throw trouble }
        }
        guard isProven || success.isEmpty && answer.status != 403 else { throw noEvidence(visit, answer) }
        guard let next = GatewayVisit.redirectWithinOrigin(in: answer) else {
            return .init(response: answer, isMarked: false)
        }
        let page = try await visit.open(next, "redirect")
        try requireNoFailure(page.response, visit)
        if !isProven, form.isAgain(in: page.response) {
            throw reject(.rejected, page.response, visit, by: "its redirect leads to the form again")
        }
        return page
    }

    /// Judges the answer to the last step, and returns if the login has worked: whether the server has shown that it accepted the
    /// credential, and did not only look like it. `proof` is a configured address that shows the login page as long as nobody is
    /// logged in.
    func conclude(
        _ answer: ExaminedResponse, hasNewCookies: Bool, from entrance: GatewayEntrance, proof: WebURL?,
        on visit: inout GatewayVisit
    ) async throws(LoginFailure) -> Bool {
        try requireNoFailure(answer, visit)
        var isProven = try isProven(by: answer, visit)
        if !isProven { try requireNoRefusal(answer, visit) }
        let isLikely = hasNewCookies || GatewayVisit.redirect(in: answer) != nil
        var seen: WebURL?
        if let next = GatewayVisit.redirectWithinOrigin(in: answer) {
            // Once, before anybody else uses the session: Tomcat takes the next request for that address for the one that it
            // saved, and this is the one to be taken.
            let page = try await followUp(next, "redirect", isProven || isLikely, over: .none, &visit)
            guard let page else { return isProven }
            let isResource = entrance.isResource(next)
            if !isResource, next != proof { try requireNoFailure(page.response, visit) }
            isProven = isProven || self.isProven(by: page.response)
            if !isProven, page.isMarked || form.isAgain(in: page.response) {
                guard hasNewCookies, isResource, success.isEmpty else {
                    throw reject(.rejected, page.response, visit, by: "its redirect leads to the login page")
                }
            }
            if isSettled(page.response) { seen = next }
        }
        guard !isProven else { return true }
        guard let proof else {
            guard success.isEmpty else { throw noEvidence(visit, answer) }
            if hasNewCookies { return false }
            if let seen, entrance.isResource(seen) { return true }
            guard entrance.isCallers else {
                guard isLikely else { throw noEvidence(visit, answer) }
                return false
            }
            return try await requireOpen(entrance.address, answer, isLikely, &visit)
        }
        if success.isEmpty, seen == proof { return true }
        let page = try await followUp(proof, "check", success.isEmpty && isLikely, &visit)
        guard let page else { return false }
        if self.isProven(by: page.response) { return true }
        if page.isMarked {
            throw reject(.rejected, page.response, visit, by: "\(proof.path) shows the login page after it")
        }
        guard success.isEmpty else { throw noEvidence(visit, answer) }
        let trouble = visit.trouble(in: page.response, "check")
        if !hasNewCookies, let trouble { throw trouble }
        return trouble == nil
    }

    /// Judges the answer to a step that something is taken from: what failed in a way that is known, then the login page
    /// again, then `success` where it is named. That what is wanted is there is evidence as well, and is looked for next.
    func requireSuccess(of answer: ExaminedResponse, _ visit: GatewayVisit) throws(LoginFailure) {
        try requireNoFailure(answer, visit)
        guard try !isProven(by: answer, visit) else { return }
        try requireNoRefusal(answer, visit)
        guard success.isEmpty else { throw noEvidence(visit, answer) }
    }

    /// Without a sign of success in the answer, requires that the address that a caller met the page at shows none any more. A page
    /// that is still there proves nothing: it may always be. Only a preset's server says no by a plain page.
    private func requireOpen(
        _ address: WebURL, _ answer: ExaminedResponse, _ isLikely: Bool, _ visit: inout GatewayVisit
    ) async throws(LoginFailure) -> Bool {
        guard let page = try await followUp(address, "check", isLikely, &visit) else { return false }
        if page.isMarked {
            if form.isPreset, (200...299).contains(answer.status) {
                throw reject(.rejected, page.response, visit, by: "\(address.path) shows the login page after it")
            }
            throw noEvidence(visit, answer)
        }
        if let trouble = visit.trouble(in: page.response, "check") { throw trouble }
        return true
    }

    /// An answer that settles by itself that nobody is asked to log in: no redirect, and no trouble.
    private func isSettled(_ response: ExaminedResponse) -> Bool {
        response.status < 300 || (400...499).contains(response.status) && ![400, 408, 429].contains(response.status)
    }

    /// One GET after the form. `nil` where it brought nothing to look at and there is evidence enough without.
    private func followUp(
        _ address: WebURL, _ step: String, _ isEnough: Bool, over redirects: GatewayVisit.Redirects = .all,
        _ visit: inout GatewayVisit
    ) async throws(LoginFailure) -> GatewayVisit.Page? {
        do throws(LoginFailure) {
            return try await visit.look(at: address, step, over: redirects)
        } catch {
            guard isEnough else { throw error }
            return nil
        }
    }

    private func requireNoFailure(_ response: ExaminedResponse, _ visit: GatewayVisit) throws(LoginFailure) {
        var look = ResponseLook(response, ofAnyType: true)
        for failure in failed where look.match(failure.matcher) == .matches {
            visit.report("the answer matches `failed`: \(failure.cause.rawValue)")
            switch failure.cause {
            case .wrongPassword: throw reject(.rejected, response, visit)
            case .locked: throw reject(.locked, response, visit)
            case .passwordExpired:
                var rejected = reject(.rejected, response, visit)
                rejected.detail = "The password has expired and must be changed at the server first. \(rejected.detail)"
                throw rejected
            case .tooManySessions:
                throw visit.failure("The server refuses another session while others stand.", response)
            case .unavailable:
                throw visit.failure("The server says that it cannot serve the login at the moment.", response)
            }
        }
    }

    /// The login page again, or a status that says no.
    private func requireNoRefusal(_ answer: ExaminedResponse, _ visit: GatewayVisit) throws(LoginFailure) {
        if visit.isMarked(answer) || form.isAgain(in: answer) {
            throw reject(.rejected, answer, visit, by: "it is the login page again")
        }
        if answer.status == 401 { throw reject(.rejected, answer, visit, by: "its status is 401") }
        if answer.status == 403 { throw forbid(answer, visit) }
        if let trouble = visit.trouble(in: answer, "form") { throw trouble }
    }

    /// The failure of a 403, which may be about the password, but also about the request: guards against forged requests and too many
    /// of them say it too. A value that was accepted here before is sent once more, after a minute; the next 403 counts.
    private func forbid(_ answer: ExaminedResponse, _ visit: GatewayVisit) -> LoginFailure {
        let remedy =
            "If it is not about the credential, say by `failed` and `success` what tells, or name an address that only a "
            + "session opens by `prove-at`."
        guard use.acceptance(in: visit.conversation) != nil else {
            var rejected = reject(.rejected, answer, visit, by: "its status is 403")
            rejected.detail += " The answer to the form had status 403. \(remedy)"
            return rejected
        }
        use.withdrawAcceptance(in: visit.conversation)
        visit.report(
            "the answer to the form has status 403, for a value that was accepted before: once more, in a minute")
        var failure = visit.failure(
            "The server answered the form with status 403. It has accepted this credential before, so that it is sent once more, "
                + "after a minute; refused again, it counts as rejected. \(remedy)", answer)
        failure.retryAt = max(failure.retryAt ?? 0, visit.conversation.now().saturatingAdd(Self.forbiddenPause))
        return failure
    }

    /// The pause before a value is sent once more to a server that forbade it, in milliseconds.
    private static let forbiddenPause: Int64 = 60_000

    /// Evidence in the answer to the form, where the server is not in trouble: then it has decided nothing.
    private func isProven(by answer: ExaminedResponse, _ visit: GatewayVisit) throws(LoginFailure) -> Bool {
        if answer.status != 400, let trouble = visit.trouble(in: answer, "form") { throw trouble }
        return isProven(by: answer)
    }

    private func isProven(by response: ExaminedResponse) -> Bool {
        var look = ResponseLook(response, ofAnyType: true)
        return look.matchAny(success) == .matches
    }

    /// The failure of a rejection, of which the latch is told; `sign` is what decided, unless that was reported before.
    private func reject(
        _ reason: Latch.Reason, _ response: ExaminedResponse, _ visit: GatewayVisit, by sign: String? = nil
    ) -> LoginFailure {
        if let sign { visit.report("the answer to the form means a wrong password: \(sign)") }
        return use.reject(
            reason, serverWait: Moment.retry(after: response.fields, now: visit.conversation.now()),
            in: visit.conversation)
    }

    private func noEvidence(_ visit: GatewayVisit, _ answer: ExaminedResponse) -> LoginFailure {
        visit.failure(
            "The server's answer to the form, with status \(answer.status), does not tell whether the login worked. Say by "
                + "`success` and `failed` what does, or name an address that only a session opens by `prove-at`.",
            answer)
    }
}
