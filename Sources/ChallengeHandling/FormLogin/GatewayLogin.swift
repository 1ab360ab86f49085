// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Wins a session at a gateway: fetches the login page, submits its form, and makes sure that nobody is asked any more.
public struct GatewayLogin: SessionLogin {
    /// What is known of the gateway.
    public let rules: GatewayRules
    /// The challenge, the credential, and the upstream's origin.
    public let key: LatchKey
    /// The upstream's address: the login page is expected there, and a page's address is relative to it.
    public let base: WebURL
    /// The address that every accepted user may GET (`prove-at`); `nil` if none is configured.
    public let proof: WebURL?
    /// The address that was answered by the login page; `nil` ahead of any. It is asked for only where no configured address shows
    /// the page, without its query.
    public let challenged: WebURL?
    /// The address of the request that waits for the session before any challenge; `nil` if none does.
    public let target: WebURL?
    /// The form of the first login that worked.
    public let provenForm: ProvenForm
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public let retryRejectedAfter: Duration?

    /// A login.
    public init(
        _ rules: GatewayRules, key: LatchKey, base: WebURL, proof: WebURL? = nil, challenged: WebURL? = nil,
        target: WebURL? = nil, provenForm: ProvenForm = ProvenForm(), retryRejectedAfter: Duration? = nil
    ) {
        self.rules = rules
        self.key = key
        self.base = base
        self.proof = proof
        self.challenged = challenged
        self.target = target
        self.provenForm = provenForm
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Wins a session, or says why not. Submits the form once; whatever is not clearly a success or a rejection is unknown.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        var visit = GatewayVisit(
            name: key.challenge, conversation: conversation, patience: patience, isMarked: isMarked)
        let use: CredentialUse
        do throws(LoginFailure) {
            use = try await CredentialUse.look(up: key, retryRejectedAfter: retryRejectedAfter, in: conversation)
            // Not in the middle of a login: the server might count half of one as an attempt.
            try requireFields(of: use)
        } catch {
            // A request that waits may go on where certainly nobody asks for a login.
            if target != nil, !isPageNamed, case .nothingAsked(let session, isCertain: true) = try await enter(&visit) {
                return session
            }
            throw error
        }
        let entrance: GatewayEntrance
        switch try await enter(&visit) {
        case .found(let found): entrance = found
        case .nothingAsked(let session, _): return session
        case .notFound(_, let trouble?): throw trouble
        case .notFound(let last, nil):
            var failure = visit.failure(
                "No login page came where one was expected. Name its address by `login.page`, or one that only a session opens by "
                    + "`prove-at`, or say by `detect` what tells the page.", last)
            // Nothing was sent: whoever meets the page next brings its address.
            failure.isCancelled = challenged == nil
            throw failure
        }
        var page = entrance.page
        var submitted: ProvenForm.Form?
        var isShown = false
        for (number, step) in rules.steps.enumerated() {
            if number > 0, step.page != nil {
                page = try await visit.open(try visit.resolve(step.page, at: base, else: base), "page")
            }
            // Later pages are answers to what was submitted, not pages that somebody chose.
            let targets = GatewayTargets(
                base: base, entrance: entrance.leading(to: page, isFirst: number == 0),
                proven: number == 0 ? provenForm.form : nil)
            let form = GatewayForm(step, on: page.response, to: targets)
            let request = try form.request(filledFrom: use, by: visit)
            if number == 0 { submitted = form.provable }
            let (before, sentAt) = (visit.jar, conversation.now())
            let answer = try await visit.send(request, rules.steps.count == 1 ? "form" : "step \(number + 1)")
            let judge = GatewayJudge(
                success: step.success + (number + 1 < rules.steps.count ? [] : rules.success),
                failed: step.failed + rules.failed, use: use, form: form)
            if !step.extraction.isEmpty {
                try judge.requireSuccess(of: answer, visit)
                try visit.extract(step.extraction, from: answer, sentAt: sentAt)
                page = GatewayVisit.Page(response: answer, isMarked: false)
                isShown = true
            } else if number + 1 < rules.steps.count {
                page = try await judge.proceed(after: answer, on: &visit)
            } else {
                isShown = try await judge.conclude(
                    answer, hasNewCookies: visit.jar.hasMore(than: before), from: entrance,
                    proof: provingAddress(entrance), on: &visit)
            }
        }
        var session = try self.session(visit, of: use)
        // Without a challenge nobody says where its page is.
        session.isRenewedAhead = !entrance.isCallers
        if let submitted { provenForm.note(submitted) }
        if isShown { use.accept(in: conversation) }
        return session
    }

    /// True if a response tells that nobody is logged in.
    func isMarked(_ response: ExaminedResponse) -> Bool {
        var look = ResponseLook(response)
        return look.matchAny(rules.detect + rules.markers) == .matches
    }

    /// The configured address that shows the login page only as long as nobody is logged in. A page that is named always asks; and
    /// where a token goes along, cookies alone prove nothing.
    private func provingAddress(_ entrance: GatewayEntrance) -> WebURL? {
        guard !rules.steps.contains(where: { !$0.extraction.isEmpty }) else { return nil }
        if let proof { return proof }
        return switch entrance.source {
        case .configured: entrance.address
        case .named: base == entrance.address ? nil : base
        case .challenged: nil
        }
    }

    /// The time that its pages are waited for: as long as the answer of the step that may take longest.
    private var patience: Duration { rules.steps.map(\.timeout).max() ?? .seconds(10) }

    /// True if the login page needs no look for it.
    private var isPageNamed: Bool { rules.steps.first.map { $0.page != nil || $0.needsNoPage } ?? false }

    /// Finds the login page: at the address that the configuration names, at `prove-at`, at the upstream's address, and only then where
    /// a caller met it, or where its request waits.
    private func enter(_ visit: inout GatewayVisit) async throws(LoginFailure) -> GatewaySearch.Outcome {
        guard let first = rules.steps.first, isPageNamed else {
            return try await GatewaySearch(
                configured: (proof.map { [$0] } ?? []) + [base], origin: base.origin, challenged: challenged,
                target: target
            ).run(on: &visit)
        }
        let address = try visit.resolve(first.page, at: base, else: base)
        let page =
            first.needsNoPage
            ? GatewayVisit.Page(response: ExaminedResponse(status: 200, url: address), isMarked: false)
            : try await visit.open(address, "page")
        return .found(GatewayEntrance(address: address, source: .named, page: page))
    }

    private func session(_ visit: GatewayVisit, of use: CredentialUse) throws(LoginFailure) -> Session {
        let jar = visit.cookies(passing: rules.callerCookies, dropping: rules.passingCookies)
        let fields = try fields(use.credential.adding(visit.extracted), visit)
        guard jar.hasOwn || !fields.isEmpty else {
            throw visit.failure(
                jar.isEmpty
                    ? "The login set no cookie, so there is no session that could be used."
                    : "The login set no cookie but those that `cookies.pass` gives to callers, so there is no session that "
                        + "could be used.")
        }
        return visit.session(jar, fields: fields)
    }

    private func fields(_ credential: Credential, _ visit: GatewayVisit) throws(LoginFailure) -> [InjectedField] {
        var fields: [InjectedField] = []
        for part in rules.inject {
            guard let name = HTTPField.Name(part.name) else { continue }
            do throws(TemplateError) {
                fields.append(InjectedField(name: name, value: try part.value.render(credential)))
            } catch {
                throw error.loginFailure(challenge: visit.name)
            }
        }
        return fields
    }

    private func requireFields(of use: CredentialUse) throws(LoginFailure) {
        // What an answer will hold counts as there in what comes after it.
        var credential = use.credential
        for step in rules.steps {
            try require(step.parameters + step.headers, of: credential)
            credential = credential.adding(
                Dictionary(step.extraction.parts.map { ($0.name, Secret("")) }, uniquingKeysWith: { $1 }))
        }
        try require(rules.inject, of: credential)
    }

    private func require(_ parts: [GatewayStep.Part], of credential: Credential) throws(LoginFailure) {
        for part in parts {
            do throws(TemplateError) {
                try part.value.check(credential)
            } catch {
                throw error.loginFailure(challenge: key.challenge)
            }
        }
    }
}
