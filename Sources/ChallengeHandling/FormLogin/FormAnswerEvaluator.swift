// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Evaluation of the answers to a submitted form: collects the evidence, asks further addresses as long as nothing has decided,
/// and carries out the verdict.
struct FormAnswerEvaluator {
    let use: CredentialUse
    /// Differences between the submission and what a browser would submit.
    let faults: [String]
    let sources: FormEvidence
    /// Statements so far.
    private(set) var evidence = EvidenceList()

    private var form: GatewayForm { sources.form }
    var success: [ResponseMatcher] { sources.success }

    init(use: CredentialUse, faults: [String] = [], sources: FormEvidence) {
        self.use = use
        self.faults = faults
        self.sources = sources
    }

    /// Evaluates the answer to a step before the last. Returns the page for the next step. Pages of a login may look
    /// alike: only the exact form of this step counts as the login page again.
    mutating func proceed(
        after answer: ExaminedResponse, on client: inout GatewayClient
    ) async throws(LoginFailure) -> GatewayClient.Page {
        add(sources.configured(answer, "the answer"), client)
        if !isAccepted(client) {
            if form.isShownAgain(in: answer) {
                add([Evidence(.answer, .rejected(.wrong), "the answer has the form again")], client)
            } else if answer.status == 401, !form.isOfPage {
                add([Evidence(.answer, .rejected(.wrong), "the answer has status 401")], client)
            } else if InconclusiveStatus.containsForForm(answer.status) || [401, 403].contains(answer.status) {
                add([Evidence(.answer, .unclear, "the answer has status \(answer.status)")], client)
            }
            addFaults(client)
        }
        try await requireNoRejection(answer, client)
        if !isAccepted(client) {
            if let trouble = client.trouble(in: answer, "form") { throw trouble }
            guard success.isEmpty, ![401, 403].contains(answer.status) else { throw noEvidence(client, answer) }
        }
        guard let next = GatewayClient.redirectWithinOrigin(in: answer) else { return .init(response: answer) }
        let page = try await client.open(next, "redirect")
        if !isAccepted(client), form.isShownAgain(in: page.response) {
            add([Evidence(.answer, .rejected(.wrong), "the redirect leads to the form again")], client)
        }
        try await requireNoRejection(page.response, client)
        return page
    }

    /// Evaluates the answer to the last step, and returns whether the login is verified. It is verified if the server
    /// has shown that it accepted the credential, not merely seemed to. `proof` is an address that shows the login page
    /// without a session.
    mutating func conclude(
        _ answer: ExaminedResponse, hasNewCookies: Bool, proof: LoginProof?, on client: inout GatewayClient
    ) async throws(LoginFailure) -> Bool {
        let loginPage = sources.loginPage
        add(sources.evidence(in: answer, hasNewCookies: hasNewCookies), client)
        addFaults(client)
        if InconclusiveStatus.contains(answer.status), !evidence.isSettled {
            throw client.trouble(in: answer, "form") ?? noEvidence(client, answer)
        }
        if !isPlain(answer, hasNewCookies) { try await requireNoRejection(answer, client) }
        let isLikely = hasNewCookies || answer.redirectTarget != nil
        if let next = GatewayClient.redirectWithinOrigin(in: answer) {
            // Requested once, before the session is used otherwise: Tomcat treats the next request for that address as
            // the one that it saved, and that must be this request.
            let page = try await followUp(next, "redirect", isAccepted(client) || hasNewCookies, &client)
            guard let page else { return isAccepted(client) }
            let isResource = loginPage.isResource(next)
            if !(isResource && hasNewCookies && success.isEmpty) {
                add(sources.evidence(onLanding: page, hasNewCookies: hasNewCookies), client)
            }
            if isSettled(page.response), !page.asksForLogin, !form.isShownAgain(in: page.response), success.isEmpty,
                next == proof?.address || isResource && !hasNewCookies
            {
                guard try await hasAsked(proof, client) else {
                    return try requireLikely(isLikely, answer, client)
                }
                let sentence = "its redirect leads to \(next.path), which shows no login page any more"
                add([Evidence(.verifiedAddress, .accepted, sentence)], client)
            }
            // If a proven address will show it, a page to which a redirect leads need not decide.
            if proof == nil || next == proof?.address || !isDoubtful(client) {
                try await requireNoRejection(page.response, client)
            }
        } else if [400, 401, 403].contains(answer.status), !isAccepted(client) {
            throw client.trouble(in: answer, "form") ?? noEvidence(client, answer)
        }
        if isAccepted(client) { return true }
        guard let proof else { return try await concludeWithoutProof(answer, hasNewCookies, isLikely, &client) }
        guard let page = try await followUp(proof.address, "check", success.isEmpty && isLikely, &client) else {
            try await requireNoRejection(answer, client)
            return false
        }
        add(sources.configured(page.response, "\(proof.address.path)").filter { $0.meaning == .accepted }, client)
        let isAsking = page.asksForLogin || form.isShownAgain(in: page.response)
        if success.isEmpty || isAsking, let before = try await pageBefore(proof, isAsking: isAsking, client) {
            add(
                sources.evidence(at: proof.address, shows: page, before: before, hasNewCookies: hasNewCookies), client)
        }
        try await requireNoRejection(page.response, client)
        if case .accepted = verdict(client) { return true }
        guard success.isEmpty else { throw noEvidence(client, answer) }
        if let trouble = client.trouble(in: page.response, "check") {
            guard hasNewCookies else { throw trouble }
            return false
        }
        guard !isAsking else { throw noEvidence(client, answer) }
        return try requireLikely(isLikely, answer, client)
    }

    /// Returns false: the login seems to have worked. Throws without any sign of that.
    private func requireLikely(
        _ isLikely: Bool, _ answer: ExaminedResponse, _ client: GatewayClient
    ) throws(LoginFailure) -> Bool {
        guard isLikely else { throw noEvidence(client, answer) }
        client.report(
            "the login seems to have worked, but no address has shown that it asks for a login without a session")
        return false
    }

    /// True for a servlet container's plain page while no evidence has decided: it is no reason to look for a login page.
    private func isPlain(_ answer: ExaminedResponse, _ hasNewCookies: Bool) -> Bool {
        sources.isPlainServletAnswer(answer, hasNewCookies: hasNewCookies) && !evidence.isSettled
    }

    private mutating func concludeWithoutProof(
        _ answer: ExaminedResponse, _ hasNewCookies: Bool, _ isLikely: Bool, _ client: inout GatewayClient
    ) async throws(LoginFailure) -> Bool {
        let isPlain = isPlain(answer, hasNewCookies)
        if !isPlain || !sources.loginPage.isCallers { try await requireNoRejection(answer, client) }
        guard success.isEmpty || isPlain && sources.loginPage.isCallers else { throw noEvidence(client, answer) }
        if hasNewCookies {
            client.report("the login seems to have worked: the answer sets new cookies")
            return false
        }
        guard sources.loginPage.isCallers else {
            guard isLikely else { throw noEvidence(client, answer) }
            return false
        }
        // The caller's address may always show the login page: one that is still there proves nothing.
        let address = sources.loginPage.address
        guard let page = try await followUp(address, "check", isLikely, &client) else { return false }
        if page.asksForLogin {
            try await requireNoRejection(answer, client)
            throw noEvidence(client, answer)
        }
        if let trouble = client.trouble(in: page.response, "check") { throw trouble }
        guard success.isEmpty else { throw noEvidence(client, answer) }
        return true
    }

    /// Evaluates the answer to a step with an extraction: known failures, then the login page again, then `success` if
    /// configured. The extracted values are evidence as well, and are checked next. `isShown`: the answer's head has
    /// them.
    mutating func requireSuccess(
        of answer: ExaminedResponse, isShown: Bool, _ client: GatewayClient
    ) async throws(LoginFailure) {
        add(sources.configured(answer, "the answer"), client)
        if isShown { add([Evidence(.configured, .accepted, "the answer has the values of `extract`")], client) }
        if !isAccepted(client) { add(sources.evidence(in: answer, hasNewCookies: false), client) }
        addFaults(client)
        try await requireNoRejection(answer, client)
        if isAccepted(client) { return }
        if let trouble = client.trouble(in: answer, "form") { throw trouble }
        guard success.isEmpty, ![401, 403].contains(answer.status) else { throw noEvidence(client, answer) }
    }
}

// A provider's pages, one after the other.
extension FormAnswerEvaluator {
    /// Evaluates an answer of the server that got the form. Returns true once `success` has matched.
    mutating func judge(_ response: ExaminedResponse, _ client: GatewayClient) async throws(LoginFailure) -> Bool {
        add(sources.evidence(in: response, hasNewCookies: false), client)
        addFaults(client)
        try await requireNoRejection(response, client)
        return evidence.pieces.contains { $0.source == .configured && $0.meaning == .accepted }
    }
}

// Verdicts.
extension FormAnswerEvaluator {
    /// Adds statements, and reports each.
    mutating func add(_ pieces: [Evidence], _ client: GatewayClient) {
        for piece in pieces where !evidence.pieces.contains(piece) {
            client.report(piece.text)
            evidence.add(piece)
        }
    }

    private mutating func addFaults(_ client: GatewayClient) {
        add((faults + client.faults.sorted()).map { Evidence(.ownFault, .unclear, $0) }, client)
    }

    private func verdict(_ client: GatewayClient) -> EvidenceList.Verdict {
        evidence.verdict(wasAccepted: use.acceptance(in: client.conversation) != nil)
    }

    private func isAccepted(_ client: GatewayClient) -> Bool {
        if case .accepted(let piece) = verdict(client) { return piece.source != .hint }
        return false
    }

    private func isDoubtful(_ client: GatewayClient) -> Bool {
        switch verdict(client) {
        case .rejected(_, let piece), .doubted(let piece): piece.source == .doubtful
        default: false
        }
    }

    /// Carries out the verdict if it ends the login.
    mutating func requireNoRejection(_ response: ExaminedResponse, _ client: GatewayClient) async throws(LoginFailure) {
        switch verdict(client) {
        case .accepted: return
        case .rejected(let rejection, let piece): throw await reject(rejection, piece, response, client)
        case .doubted(let piece): throw await doubt(piece, response, client)
        case .unclear(let piece?) where piece.source == .configured:
            guard sources.cause(in: response) == .tooManySessions else {
                throw client.failure("The server says that it cannot serve the login at the moment.", response)
            }
            // It knows who asks, so it has checked the value.
            await use.withdrawSubmission(in: client.conversation)
            throw client.failure("The server refuses another session while others exist.", response)
        case .unclear(let piece?) where piece.source == .ownFault && isRefused:
            throw client.failure(
                "The server refused the form, but it was not submitted as a browser would do it: \(piece.sentence). So this says "
                    + "nothing about the credential. Configure the form in `login`, or use a login helper.", response)
        case .unclear: return
        }
    }

    /// True if a statement rejects the value.
    private var isRefused: Bool {
        evidence.pieces.contains { if case .rejected = $0.meaning { true } else { false } }
    }

    /// Returns the failure of a rejection, and closes the latch.
    private func reject(
        _ rejection: Evidence.Rejection, _ piece: Evidence, _ response: ExaminedResponse, _ client: GatewayClient
    ) async -> LoginFailure {
        var failure = await use.reject(
            rejection == .locked ? .locked : .rejected,
            serverWait: Moment.retry(after: response.fields, now: client.conversation.now()), by: piece,
            in: client.conversation)
        if rejection == .passwordExpired {
            failure.detail =
                "The password has expired and must be changed at the server first. \(failure.detail)"
        }
        if response.status == 403 { failure.detail += " \(Self.remedy)" }
        return failure
    }

    /// Returns the failure of a refusal that a right value may meet too, for a value that was accepted before. It is
    /// submitted once more, after a minute; the next such refusal counts as a rejection.
    private func doubt(_ piece: Evidence, _ response: ExaminedResponse, _ client: GatewayClient) async -> LoginFailure {
        let retryAt = await use.doubt(in: client.conversation)
        client.report("the value was accepted before: it is sent again in a minute")
        var failure = client.failure(
            "The server seems to refuse the credential (\(piece.sentence)). It has accepted this credential before, so it is "
                + "sent again after a minute; another refusal counts as a rejection. \(Self.remedy)", response)
        failure.retryAt = max(failure.retryAt ?? 0, retryAt)
        return failure
    }

    private static let remedy =
        "If this is not about the credential, configure `failed` and `success`, or set `prove-at` to an address that needs a "
        + "session."

    private func noEvidence(_ client: GatewayClient, _ answer: ExaminedResponse) -> LoginFailure {
        let found = evidence.summary.isEmpty ? "" : " (\(evidence.summary))"
        return client.failure(
            "The server's answer to the form, with status \(answer.status), does not show whether the login worked\(found). "
                + "Configure `success` and `failed`, or set `prove-at` to an address that needs a session.",
            answer)
    }
}

// Further requests.
extension FormAnswerEvaluator {
    /// Returns whether a response alone shows that no login is needed: neither a redirect nor a server error.
    private func isSettled(_ response: ExaminedResponse) -> Bool {
        !(300...399).contains(response.status) && !InconclusiveStatus.containsForForm(response.status)
    }

    /// Sends one GET after the form. Returns `nil` if it failed and there is enough evidence without it.
    private func followUp(
        _ address: WebURL, _ step: String, _ isEnough: Bool, _ client: inout GatewayClient
    ) async throws(LoginFailure) -> GatewayClient.Page? {
        let latest = client.latest
        do throws(LoginFailure) {
            let page = try await client.fetch(address, step)
            // A check is not part of the login: values are taken from the response before.
            if step == "check" { client.restore(latest: latest) }
            return page
        } catch {
            guard isEnough else { throw error }
            return nil
        }
    }

    /// Returns true if a proven address is known to ask for a login without the new session.
    private func hasAsked(_ proof: LoginProof?, _ client: GatewayClient) async throws(LoginFailure) -> Bool {
        guard let proof else { return true }
        return try await pageBefore(proof, isAsking: false, client) != nil
    }

    /// Returns what a proven address shows without the new session; `nil` if it asks for no login then.
    ///
    /// `isAsking`: it asks for one with the session. Otherwise the operator's word (`prove-at`) is enough.
    private func pageBefore(
        _ proof: LoginProof, isAsking: Bool, _ client: GatewayClient
    ) async throws(LoginFailure) -> LoginPage? {
        if let found = proof.found { return found }
        if proof.isConfigured, !isAsking { return sources.loginPage }
        var other = GatewayClient(
            name: client.name, conversation: client.conversation, timeout: client.timeout,
            asksForLogin: client.asksForLogin)
        let page = try await other.fetch(proof.address, "check without the session")
        guard page.asksForLogin || form.isShownAgain(in: page.response) || page.response.status == 401 else {
            return nil
        }
        return LoginPage(address: proof.address, source: .configured, page: page)
    }
}

/// An address that asks for a login without a session.
struct LoginProof {
    let address: WebURL
    /// True for `prove-at`, an address that every accepted user may GET.
    let isConfigured: Bool
    /// The login page, if this login found it there.
    let found: LoginPage?
}
