// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Wins a session by HTTP authentication: by the first scheme of a list that the server offers and that works here.
///
/// After a challenge, the request that met it tries the session (`Session.isProven`). Before any, side requests without
/// a body do: one that asks for the challenge, one that answers it. For a request that waits they go to its own address, or to
/// `prove-at`; where the answer needs no challenge (Basic), that request itself carries it first.
public struct SchemeLogin: SessionLogin {
    let plan: SchemePlan
    let challenge: ExaminedResponse?
    let scope: Scope
    private let target: WebURL?

    /// A login by `plan`, for `challenge` where that led to it; `scope` is asked for by a scheme that knows scopes. `target`:
    /// the address of the request that waits for it before any challenge.
    public init(_ plan: SchemePlan, challenge: ExaminedResponse?, scope: Scope = .empty, target: WebURL? = nil) {
        self.plan = plan
        self.challenge = challenge
        self.scope = scope
        self.target = target
    }

    /// Wins a session, or says why not.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        var use: CredentialUse?
        if let key = plan.key {
            do throws(LoginFailure) {
                use = try await CredentialUse.look(
                    up: key, retryRejectedAfter: plan.retryRejectedAfter, in: conversation)
            } catch {
                // A request that waits may go on where nothing is asked for.
                if let session = try await nothingAsked(conversation) { return session }
                throw error
            }
        }
        var occasion = SchemeOccasion(
            name: plan.name, response: challenge, scope: scope, realm: plan.realm, url: plan.address, use: use,
            conversation: conversation)
        guard let challenge else { return try await winAhead(&occasion) }
        occasion.url = challenge.url
        occasion.challenges = SchemePlan.challenges(in: challenge.fields)
        return try await proven(session(for: occasion), occasion)
    }

    private func winAhead(_ occasion: inout SchemeOccasion) async throws(LoginFailure) -> Session {
        if target != nil, plan.needsNoChallenge { return try await session(for: occasion) }
        let address = plan.isProof ? plan.address : target ?? plan.address
        occasion.url = address
        let probe = SchemeProbe(address, occasion, isTarget: target != nil)
        if !plan.needsNoChallenge {
            let (response, isTrouble) = try await firstAnswer(to: probe)
            guard let response, response.status == 401, plan.offer(in: response.fields) != nil else {
                // Nothing is protected there, as far as we can answer it; what is will ask.
                occasion.report("no challenge that this answers, so there is nothing to add yet")
                var session = Session()
                if target != nil {
                    session = .nothingAsked(at: address, now: occasion.conversation.now(), isBrief: isTrouble)
                }
                session.lookedAt = plan.isProof ? nil : address.path
                return session
            }
            if let realm = plan.realm { _ = plan.spaces?.learn(realm, at: address) }
            occasion.challenges = SchemePlan.challenges(in: response.fields)
            occasion.response = ExaminedResponse(status: response.status, fields: response.fields, url: address)
        }
        var session = try await session(for: occasion)
        // Only libcurl can answer for a connection.
        guard session.connection == nil else { return session }
        guard let response = try await probe.ask(with: session) else { return session }
        guard response.status == 401, let offer = plan.offer(in: response.fields) else {
            // Without a challenge it is not known whether anybody looked at the answer.
            session.isProven = !plan.needsNoChallenge && response.status != 401
            if session.isProven { session.use?.accept(at: occasion.url.path, in: occasion.conversation) }
            return session
        }
        let retryAt = Moment.retry(after: response.fields, now: occasion.conversation.now())
        // What was won elsewhere (a ticket, a token) says nothing of the credential when it is refused here.
        if offer != .stale, let use = session.use {
            return try await confirmed(session, use, retryAt: retryAt, occasion)
        }
        throw LoginFailure(
            .failed, challenge: plan.name,
            detail: offer == .stale
                ? "The server calls its own nonce too old at once. Have it accept nonces for longer."
                : "The server refused the answer to its challenge.",
            retryAt: retryAt)
    }

    /// The empty session, if certainly nothing is asked for at the address of the request that waits. `nil` where the credential would
    /// have gone ahead of any challenge: there an answer without one proves nothing.
    private func nothingAsked(_ conversation: Conversation) async throws(LoginFailure) -> Session? {
        guard challenge == nil, let target, !plan.needsNoChallenge else { return nil }
        let occasion = SchemeOccasion(name: plan.name, url: target, use: nil, conversation: conversation)
        guard case .response(let response) = try await SchemeProbe(target, occasion, isTarget: true).look(),
            response.status != 401 || plan.offer(in: response.fields) == nil
        else { return nil }
        return .nothingAsked(at: target, now: conversation.now())
    }

    private func firstAnswer(
        to probe: SchemeProbe
    ) async throws(LoginFailure) -> (response: SideResponse?, isTrouble: Bool) {
        guard target != nil else { return (try await probe.ask(), false) }
        switch try await probe.look() {
        case .response(let response): return (response, false)
        case .trouble: return (nil, true)
        }
    }

    /// By the first scheme that is offered and works here (CONTRIBUTING, rule 10).
    func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> Session {
        var useless: [String] = []
        for scheme in plan.schemes {
            let isOffered = scheme.offer(among: occasion.challenges, realm: plan.realm) != nil
            guard isOffered || (challenge == nil && plan.needsNoChallenge) else { continue }
            switch try await scheme.session(for: occasion) {
            case .useless(let reason):
                occasion.report("\(scheme.name): \(reason)")
                useless.append("\(scheme.name) (\(reason))")
            case .session(var session):
                if let spaces = plan.spaces, let realm = plan.realm {
                    session.signer = RealmSigner(session, of: realm, in: spaces)
                    session.fields = []
                }
                return session
            }
        }
        throw LoginFailure(
            .failed, challenge: plan.name,
            detail: useless.isEmpty
                ? "Of the schemes of the challenge \"\(plan.name)\" the server offers none any more."
                : "What the server offers of the challenge \"\(plan.name)\" does not work here: "
                    + useless.joined(separator: "; ") + ".")
    }
}
