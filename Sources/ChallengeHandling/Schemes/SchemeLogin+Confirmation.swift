// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

// A credential that a server accepted once is not rejected by a refusal at some address, which a caller chose: it is put to the server
// once more, where it is proven (`prove-at`) or was accepted last (CONTRIBUTING, rule 3).
extension SchemeLogin {
    /// Asks if the credential of `held` is still accepted. `.over`: it is refused there too, or was never accepted anywhere.
    public func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        guard let use = held.use else { return .over }
        let address: WebURL
        var wasAsked = true
        if plan.isProof {
            address = plan.address
        } else {
            guard let mark = use.acceptance(in: conversation) else { return .over }
            wasAsked = mark.wasAsked
            // Accepted by a request that no GET can stand for.
            guard let path = mark.path else { return .unknown }
            address = WebURL(origin: plan.address.origin, path: path)
        }
        if let challenge, challenge.url == address, challenge.method == .get { return .over }
        do throws(LoginFailure) {
            return try await confirm(held, use, at: address, wasAsked: wasAsked, conversation)
        } catch {
            return .unknown
        }
    }

    private func confirm(
        _ held: Session, _ use: CredentialUse, at address: WebURL, wasAsked: Bool, _ conversation: Conversation
    ) async throws(LoginFailure) -> SessionConfirmation {
        var occasion = SchemeOccasion(
            name: plan.name, scope: scope, realm: plan.realm, url: address, use: use, conversation: conversation)
        let probe = SchemeProbe(address, occasion)
        // First without: an address that has become open proves nothing. Digest has its nonce from here.
        guard let first = try await probe.ask(), first.status == 401, plan.offer(in: first.fields) != nil else {
            return wasAsked ? .unknown : .over
        }
        var session = held
        if held.signer != nil {
            occasion.challenges = SchemePlan.challenges(in: first.fields)
            occasion.response = ExaminedResponse(status: first.status, fields: first.fields, url: address)
            session = try await self.session(for: occasion)
        }
        guard let second = try await probe.ask(with: session) else { return .unknown }
        guard second.status == 401, let offer = plan.offer(in: second.fields) else {
            use.accept(at: address.path, in: conversation)
            return .stillGood
        }
        return offer == .stale ? .unknown : .over
    }

    /// Has a session that a challenge led to proven at `prove-at`, if that is configured, before any request tries it: what refuses it
    /// then is the resource.
    func proven(_ session: Session, _ occasion: SchemeOccasion) async throws(LoginFailure) -> Session {
        guard plan.isProof, let use = session.use, !session.isProven else { return session }
        guard let response = try await SchemeProbe(plan.address, occasion).ask(with: session) else { return session }
        var session = session
        guard response.status == 401, let offer = plan.offer(in: response.fields) else {
            use.accept(at: plan.address.path, in: occasion.conversation)
            session.isProven = true
            return session
        }
        // A nonce of another place was too old here.
        if offer == .stale { return session }
        throw use.reject(
            .rejected, serverWait: Moment.retry(after: response.fields, now: occasion.conversation.now()),
            in: occasion.conversation)
    }

    /// Judges a session that was refused before any request tried it. At `prove-at`, or if its value was never accepted, it is rejected.
    func confirmed(
        _ session: Session, _ use: CredentialUse, retryAt: Int64?, _ occasion: SchemeOccasion
    ) async throws(LoginFailure) -> Session {
        var confirmation = SessionConfirmation.over
        if !plan.isProof || occasion.url != plan.address {
            confirmation = await confirm(session, occasion.conversation)
        }
        switch confirmation {
        case .over: throw use.reject(.rejected, serverWait: retryAt, in: occasion.conversation)
        case .stillGood:
            var session = session
            session.isProven = true
            return session
        case .unknown:
            throw LoginFailure(
                .failed, challenge: plan.name,
                detail:
                    "The server refused the credential at \(occasion.url.path), and no other address could tell if it still "
                    + "accepts it. Name one that every accepted user may GET by `prove-at`.", retryAt: retryAt)
        }
    }
}
