// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Statements of a server's answers about a submitted form, as pure functions of the answers (CONTRIBUTING, rule 3).
struct FormEvidence {
    let success: [ResponseMatcher]
    let failed: [FailureMatcher]
    /// The submitted form.
    let form: GatewayForm
    /// The page that showed the form, fetched without a session.
    let loginPage: LoginPage
    /// Returns whether a response asks for a login.
    let asksForLogin: (ExaminedResponse) -> Bool

    /// Returns what the answer to the submission says. `hasNewCookies`: it set a cookie with a new name or value.
    func evidence(in answer: ExaminedResponse, hasNewCookies: Bool) -> [Evidence] {
        var pieces = configured(answer, "the answer")
        let status = answer.status
        if InconclusiveStatus.contains(status) {
            return pieces + [Evidence(.answer, .unclear, "the answer has status \(status)")]
        }
        if isPlainServletAnswer(answer, hasNewCookies: hasNewCookies) {
            pieces.append(
                Evidence(
                    .answer, .rejected(.wrong),
                    "a servlet container answers a right password by a redirect, and the answer has status \(status)"))
        } else if let again = formAgain(in: answer, hasNewCookies: hasNewCookies) {
            pieces.append(again)
        } else if status == 400 {
            pieces.append(Evidence(.answer, .unclear, "the answer has status 400"))
        } else if status == 401 || status == 403 {
            pieces.append(refusal(status))
        }
        if hasNewCookies, answer.redirectTarget != nil {
            pieces.append(Evidence(.hint, .accepted, "the answer sets new cookies and redirects"))
        }
        return pieces
    }

    /// Returns true for a plain page of a servlet container: its error page, or a right password that it had nothing saved for.
    func isPlainServletAnswer(_ answer: ExaminedResponse, hasNewCookies: Bool) -> Bool {
        form.isServletContainers && (200...299).contains(answer.status) && !hasNewCookies && !asksForLogin(answer)
            && !form.isShownAgain(in: answer)
    }

    /// Returns what the page says to which the answer's redirect leads.
    ///
    /// Others may have written that page: only the way back to the login page is a statement of the server.
    func evidence(onLanding page: GatewayClient.Page, hasNewCookies: Bool) -> [Evidence] {
        let response = page.response
        let isBack = response.url.pathWithoutParameters == loginPage.page.response.url.pathWithoutParameters
        var pieces = configured(response, "the page after it").map { piece -> Evidence in
            // Only the login page itself belongs to the server alone.
            guard case .accepted = piece.meaning else { return isBack && !loginPage.isInPlace ? piece : piece.foreign }
            return piece
        }
        // Heads of redirects are the server's. A cookie may be set by any of them.
        pieces += page.redirects.flatMap { configured($0, "a redirect after it") }.filter { $0.meaning == .accepted }
        let sentence = "the redirect leads to the login page"
        if page.isAskedByRedirect {
            pieces.append(Evidence(.answer, .rejected(.wrong), sentence))
        } else if form.isShownAgain(in: response) || page.asksForLogin {
            let isOwn = isBack && form.isShownAgain(in: response)
            if isOwn, !loginPage.isInPlace || !hasNewCookies {
                pieces.append(Evidence(.answer, .rejected(.wrong), sentence))
            } else if form.isServletContainers || isBack && loginPage.looksLike(page) {
                pieces.append(Evidence(hasNewCookies ? .doubtful : .answer, .rejected(.wrong), sentence))
            } else {
                pieces.append(
                    Evidence(
                        .foreignPage, .unclear,
                        "\(response.url.path) has a login form or the words of `detect`, and others may have written it"
                    ))
            }
        }
        return pieces
    }

    /// Returns what an address says that asks for a login without the session. `page` is its answer with the new session, and
    /// `before` the one without.
    func evidence(
        at proof: WebURL, shows page: GatewayClient.Page, before: LoginPage, hasNewCookies: Bool
    ) -> [Evidence] {
        let response = page.response
        if InconclusiveStatus.containsForForm(response.status) || response.status == 401 {
            return [Evidence(.foreignPage, .unclear, "\(proof.path) has status \(response.status)")]
        }
        guard page.asksForLogin || form.isShownAgain(in: response) else {
            return [Evidence(.verifiedAddress, .accepted, "\(proof.path) shows no login page any more")]
        }
        if before.looksLike(page) {
            // Without any sign of a session, the server has let nobody in.
            return [
                Evidence(
                    hasNewCookies ? .doubtful : .answer, .rejected(.wrong),
                    "\(proof.path) shows the login page after it")
            ]
        }
        guard before.isInPlace else {
            return [
                Evidence(
                    .verifiedAddress, .accepted, "\(proof.path) leads no longer to \(before.page.response.url.path)")
            ]
        }
        return [
            Evidence(
                .foreignPage, .unclear,
                "\(proof.path) has a login form, but not on the page that it shows without a session")
        ]
    }

    /// Returns the cause in `failed` that a response matches first.
    func cause(in response: ExaminedResponse) -> FailureMatcher.Cause? {
        var inspection = ResponseInspection(response, ofAnyType: true)
        return failed.first { inspection.match($0.matcher) == .matches }?.cause
    }

    /// Returns what `failed` and `success` say about a response.
    func configured(_ response: ExaminedResponse, _ subject: String) -> [Evidence] {
        var inspection = ResponseInspection(response, ofAnyType: true)
        for failure in failed where inspection.match(failure.matcher) == .matches {
            let sentence = "\(subject) matches `failed` by \(failure.matcher.summary): \(failure.cause.rawValue)"
            return [Evidence(.configured, failure.cause.meaning, sentence)]
        }
        guard !InconclusiveStatus.contains(response.status), let sign = inspection.first(of: success) else { return [] }
        return [Evidence(.configured, .accepted, "\(subject) matches `success` by \(sign.summary)")]
    }

    /// Returns the statement of an answer that asks for the login again, if it does.
    private func formAgain(in answer: ExaminedResponse, hasNewCookies: Bool) -> Evidence? {
        let sentence = "the answer is the login page again"
        let isRedirect = (300...399).contains(answer.status)
        let isShownAgain = form.isShownAgain(in: answer)
        guard isShownAgain || asksForLogin(answer) else { return nil }
        // The head of a redirect is the server's; so is an answer with the form and without a new cookie.
        if isRedirect || !hasNewCookies || answer.status >= 400
            || isShownAgain && loginPage.looksLike(.init(response: answer))
        {
            return Evidence(.answer, .rejected(.wrong), sentence)
        }
        return Evidence(.doubtful, .rejected(.wrong), sentence)
    }

    /// Returns the meaning of a status that refuses. Tokens against forged requests refuse the forms of pages like this.
    private func refusal(_ status: Int) -> Evidence {
        guard !form.isOfPage || form.isPreset || form.isServletContainers else {
            return Evidence(.answer, .unclear, "the answer has status \(status) and no login form")
        }
        return Evidence(status == 401 ? .answer : .doubtful, .rejected(.wrong), "the answer has status \(status)")
    }
}

extension Evidence {
    /// The same words on a page that other people may have written.
    fileprivate var foreign: Evidence {
        Evidence(.foreignPage, .unclear, "\(sentence), on a page that others may have written")
    }
}

extension FailureMatcher.Cause {
    /// Meaning of the cause for the value.
    var meaning: Evidence.Meaning {
        switch self {
        case .wrongPassword: .rejected(.wrong)
        case .locked: .rejected(.locked)
        case .passwordExpired: .rejected(.passwordExpired)
        case .tooManySessions, .unavailable: .unclear
        }
    }
}
