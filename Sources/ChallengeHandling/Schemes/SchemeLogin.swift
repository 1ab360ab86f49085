// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes
internal import Secrets

/// Login by HTTP authentication, with the first offered scheme of a list that works.
///
/// After a challenge, the challenged request verifies the session (`Session.isVerified`). Before any challenge, side
/// requests without a body do: one to get the challenge, one with the answer. For a waiting request they go to its own
/// address, or to `prove-at`; if the answer needs no challenge (Basic), the waiting request itself carries it first.
public struct SchemeLogin: SessionLogin {
    let plan: SchemePlan
    let challenge: ExaminedResponse?
    let scope: Scope
    private let target: WebURL?

    /// Creates a login by `plan`, for `challenge` if that led to it. Schemes with scopes request `scope`. `target` is
    /// the address of the request that waits before any challenge.
    public init(_ plan: SchemePlan, challenge: ExaminedResponse?, scope: Scope = .empty, target: WebURL? = nil) {
        self.plan = plan
        self.challenge = challenge
        self.scope = scope
        self.target = target
    }

    /// Establishes a session with the first scheme that works.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        var use: CredentialUse?
        if let key = plan.key {
            do throws(LoginFailure) {
                use = try await CredentialUse.lookUp(
                    key, retryRejectedAfter: plan.retryRejectedAfter, in: conversation)
            } catch {
                // A waiting request may continue if no login is needed.
                if let session = try await nothingAsked(conversation) { return session }
                throw error
            }
        }
        var occasion = SchemeOccasion(
            name: plan.name, response: challenge, scope: scope, realm: plan.realm, url: plan.address, use: use,
            conversation: conversation)
        guard let challenge else { return try await logInAhead(&occasion) }
        occasion.url = challenge.url
        occasion.readChallenges(in: challenge.fields)
        return try await verified(session(for: occasion), occasion)
    }

    private func logInAhead(_ occasion: inout SchemeOccasion) async throws(LoginFailure) -> Session {
        // With `prove-at`, a value that was never accepted is sent there first, and not to any other address if it is
        // refused.
        if target != nil, plan.needsNoChallenge, !plan.isProof { return try await session(for: occasion) }
        let address = plan.isProof ? plan.address : target ?? plan.address
        occasion.url = address
        let probe = SchemeProbe(address, occasion, isTarget: target != nil)
        if !plan.needsNoChallenge {
            let (response, isTrouble) = try await firstAnswer(to: probe)
            guard let response, response.status == 401, plan.offer(in: response.fields) != nil else {
                // The address has no protection that could be answered. A protected address will send its own
                // challenge.
                let offered = response.flatMap { SchemePlan.description(of: $0.fields) }
                occasion.report(
                    offered.map { "the server asks for \($0), which is not what this challenge answers" }
                        ?? "no challenge that this answers, so there is nothing to add yet")
                var session = Session()
                if target != nil {
                    session = .nothingAsked(at: address, now: occasion.conversation.now(), isBrief: isTrouble)
                }
                session.probedPath = plan.isProof ? nil : address.path
                return session
            }
            if let realm = plan.realm { _ = plan.spaces?.learn(realm, at: address) }
            occasion.readChallenges(in: response.fields)
            occasion.response = ExaminedResponse(status: response.status, fields: response.fields, url: address)
        }
        var session = try await session(for: occasion)
        // Only libcurl can authenticate a connection.
        guard session.connection == nil else { return session }
        guard let response = try await probe.ask(with: session) else {
            // HEAD has shown nothing. At `prove-at` GET decides, before any other address sees the credential.
            return try await verified(session, occasion)
        }
        guard response.status == 401, let offer = plan.offer(in: response.fields) else {
            // Without a challenge it is unknown if the server checked the answer, except at `prove-at`.
            session.isVerified = (plan.isProof || !plan.needsNoChallenge) && response.status != 401
            if session.isVerified { await session.use?.accept(at: occasion.url.path, in: occasion.conversation) }
            return session
        }
        let retryAt = Moment.retry(after: response.fields, now: occasion.conversation.now())
        // A refused ticket or token of another server says nothing about the credential.
        if offer != .stale, let use = session.use {
            return try await confirmed(session, use, retryAt: retryAt, occasion)
        }
        throw LoginFailure(
            .failed, challenge: plan.name,
            detail: offer == .stale
                ? "The server calls its own new nonce stale. Configure a longer nonce lifetime there."
                : "The server refused the answer to its challenge.",
            retryAt: retryAt)
    }

    /// Returns the empty session if certainly no login is needed at the waiting request's address. `nil` for an answer
    /// that would have been sent before any challenge: then a response without one proves nothing.
    private func nothingAsked(_ conversation: Conversation) async throws(LoginFailure) -> Session? {
        guard challenge == nil, let target, !plan.needsNoChallenge else { return nil }
        let occasion = SchemeOccasion(name: plan.name, url: target, use: nil, conversation: conversation)
        guard
            case .response(let response) = try await SchemeProbe(target, occasion, isTarget: true)
                .askWithoutCredential(),
            response.status != 401 || plan.offer(in: response.fields) == nil
        else { return nil }
        return .nothingAsked(at: target, now: conversation.now())
    }

    private func firstAnswer(
        to probe: SchemeProbe
    ) async throws(LoginFailure) -> (response: SideResponse?, isTrouble: Bool) {
        guard target != nil else { return (try await probe.ask(), false) }
        switch try await probe.askWithoutCredential() {
        case .response(let response): return (response, false)
        case .trouble: return (nil, true)
        }
    }

    /// Returns a session of the first offered scheme that works (CONTRIBUTING, rule 10).
    func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> Session {
        // Time may have passed since the lookup: another process may have closed the latch.
        try occasion.use?.requireOpenLatch(in: occasion.conversation)
        var useless: [String] = []
        for scheme in plan.schemes {
            let isOffered = scheme.offer(among: occasion.challenges, realm: plan.realm) != nil
            guard isOffered || (challenge == nil && plan.needsNoChallenge) else {
                // Offered, but not readable: nothing weaker goes out in its place.
                if occasion.damaged.contains(scheme.name) { break }
                continue
            }
            switch try await scheme.session(for: occasion) {
            case .useless(let reason):
                occasion.report("\(scheme.name): \(reason)")
                useless.append("\(scheme.name) (\(reason))")
            case .session(var session):
                if let full = plan.spaces?.takeReport() { occasion.report(full, .remark) }
                if let spaces = plan.spaces, let realm = plan.realm {
                    session.signer = RealmSigner(session, of: realm, in: spaces)
                    session.fields = []
                }
                return session
            }
        }
        let unread = occasion.unreadText.map { " Not understood in its WWW-Authenticate: \($0)." } ?? ""
        throw LoginFailure(
            .failed, challenge: plan.name,
            detail: (useless.isEmpty
                ? "The server no longer offers any scheme of the challenge \"\(plan.name)\"."
                : "What the server offers of the challenge \"\(plan.name)\" does not work here: "
                    + useless.joined(separator: "; ") + ".") + unread)
    }
}

// An accepted credential is not rejected because of a refusal at an address that a caller chose. It is sent again, to
// `prove-at` or to another address that accepted it (CONTRIBUTING, rule 3).
extension SchemeLogin {
    /// Checks if the credential of `held` is still accepted. `.over` if it is refused at another address too, or was
    /// never accepted anywhere.
    public func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        await confirm(held, refusedBy: challenge?.refusal, conversation)
    }

    private func confirm(
        _ held: Session, refusedBy refusal: (path: String, isRead: Bool)?, _ conversation: Conversation
    ) async -> SessionConfirmation {
        guard let use = held.use else { return .over }
        let accepted = AcceptedAddresses(
            of: use, at: plan.address.origin, proof: plan.isProof ? plan.address : nil, refusal: refusal,
            in: conversation)
        return await accepted.confirm(in: conversation) { await ask($0, held, use, conversation) }
    }

    /// Asks an address without the credential and, if it asks for it, with it.
    private func ask(
        _ address: WebURL, _ held: Session, _ use: CredentialUse, _ conversation: Conversation
    ) async -> AcceptedAddresses.Finding {
        var occasion = SchemeOccasion(
            name: plan.name, scope: scope, realm: plan.realm, url: address, use: use, conversation: conversation)
        let probe = SchemeProbe(address, occasion)
        guard let first = try? await probe.ask() else { return .silent }
        guard first.status == 401, plan.offer(in: first.fields) != nil else { return .open }
        var session = held
        // Digest gets its nonce from the first response.
        if held.signer != nil {
            occasion.readChallenges(in: first.fields)
            occasion.response = ExaminedResponse(status: first.status, fields: first.fields, url: address)
            guard let fresh = try? await self.session(for: occasion) else { return .silent }
            session = fresh
        }
        guard let second = try? await probe.ask(with: session) else { return .unclear }
        guard second.status == 401, let offer = plan.offer(in: second.fields) else { return .accepted }
        return offer == .stale ? .unclear : .refused
    }

    /// Verifies a session at `prove-at`, if configured, before any request tries its credential. A later refusal then
    /// concerns only the resource.
    func verified(_ session: Session, _ occasion: SchemeOccasion) async throws(LoginFailure) -> Session {
        guard plan.isProof, let use = session.use, !session.isVerified else { return session }
        // An accepted value needs no trial (CONTRIBUTING, rule 4).
        if use.acceptance(in: occasion.conversation)?.wasAsked == true { return session }
        // Without a usable answer the value waits for the pause, as any with an unknown outcome (CONTRIBUTING, rule 3).
        let response = try await SchemeProbe(plan.address, occasion).decide(with: session)
        var session = session
        guard response.status == 401, let offer = plan.offer(in: response.fields) else {
            await use.accept(at: plan.address.path, in: occasion.conversation)
            session.isVerified = true
            return session
        }
        // A nonce of another address was too old here.
        if offer == .stale { return session }
        throw await use.reject(
            .rejected, serverWait: Moment.retry(after: response.fields, now: occasion.conversation.now()),
            in: occasion.conversation)
    }

    /// Checks a session that was refused before any request used it. It is rejected if another address refuses its
    /// value too, or if no address ever accepted it.
    func confirmed(
        _ session: Session, _ use: CredentialUse, retryAt: Int64?, _ occasion: SchemeOccasion
    ) async throws(LoginFailure) -> Session {
        switch await confirm(session, refusedBy: (occasion.url.path, true), occasion.conversation) {
        case .over: throw await use.reject(.rejected, serverWait: retryAt, in: occasion.conversation)
        case .postponed(let until): throw unconfirmed(at: occasion.url, retryAt: max(until, retryAt ?? until))
        case .stillGood:
            var session = session
            session.isVerified = true
            return session
        case .unknown: throw unconfirmed(at: occasion.url, retryAt: retryAt)
        }
    }

    private func unconfirmed(at address: WebURL, retryAt: Int64?) -> LoginFailure {
        LoginFailure(
            .failed, challenge: plan.name,
            detail:
                "The server refused the credential at \(address.path), and no other address could show if it still "
                + "accepts the credential. Set `prove-at` to an address that every accepted user may GET.",
            retryAt: retryAt)
    }
}

/// Common parameters of all logins of one challenge by HTTP authentication.
public struct SchemePlan: Sendable {
    /// The challenge's name in the configuration.
    public var name: String
    /// The schemes in order of preference.
    public var schemes: [any AuthenticationScheme]
    /// The configured realm; `nil` for any.
    public var realm: String?
    /// The key of the credential's latch; `nil` if no credential is configured.
    public var key: LatchKey?
    /// Time after which a latch closed by a rejection opens by itself; `nil` if it never does.
    public var retryRejectedAfter: Duration?
    /// The address to request if no response has led to the login.
    public var address: WebURL
    /// True if `address` certainly requires the login (`prove-at`), so no other is requested.
    public var isProof: Bool
    /// The realms' spaces, if logins for several realms are configured at one location.
    public var spaces: RealmSpaces?

    /// Creates a plan.
    public init(
        name: String, schemes: [any AuthenticationScheme], realm: String? = nil, key: LatchKey?,
        retryRejectedAfter: Duration? = nil, address: WebURL, isProof: Bool = false, spaces: RealmSpaces? = nil
    ) {
        self.name = name
        self.schemes = schemes
        self.realm = realm
        self.key = key
        self.retryRejectedAfter = retryRejectedAfter
        self.address = address
        self.isProof = isProof
        self.spaces = spaces
    }

    /// True if an answer can be sent before any challenge. With a configured realm it cannot: only a challenge names
    /// the realm.
    var needsNoChallenge: Bool { schemes.count == 1 && schemes[0].needsNoChallenge && realm == nil }

    /// The codec of its sessions' signers, which asks each scheme.
    public var codec: SignerCodec {
        SignerCodec { [schemes, name] image, credential in
            schemes.lazy.compactMap { $0.signer(of: image, for: credential, challenge: name) }.first
        }
    }

    /// Returns the finding of the first offered scheme in the fields of a 401. `nil` if no scheme is offered in a readable
    /// form before weaker ones.
    package func offer(in fields: HTTPFields) -> Challenge? {
        let list = ChallengeList(in: fields)
        for scheme in schemes {
            if let offer = scheme.offer(among: list.challenges, realm: realm) { return offer }
            // Offered, but not readable: nothing weaker goes out in its place.
            if list.damaged.contains(scheme.name) { return nil }
        }
        return nil
    }

    /// Returns the schemes and realms that a response offers, and what was not understood; `nil` if there is neither.
    fileprivate static func description(of fields: HTTPFields) -> String? {
        let list = ChallengeList(in: fields)
        let offered = list.challenges.prefix(8).map { challenge in
            let realm = challenge["realm"].map { " with the realm \"\(ServerText.sentence($0))\"" } ?? ""
            return ServerText.name(challenge.scheme) + realm
        }
        let unread = list.unreadText.map { ["something not understood: \($0)"] } ?? []
        return offered.isEmpty && unread.isEmpty ? nil : (offered + unread).joined(separator: ", ")
    }
}

/// Detector of challenges for a list of schemes (RFC 9110 §11.6.1). A proxy's challenges (407) are not examined.
public struct SchemeDetector: ChallengeDetector {
    private let plan: SchemePlan

    /// Creates a detector for the logins of `plan`.
    public init(_ plan: SchemePlan) { self.plan = plan }

    /// The schemes in order, as `explain` shows them.
    public var kind: String { plan.schemes.map(\.name).joined(separator: ", ") }

    /// Detects a 401 with a challenge of one of the schemes. A 403 is interpreted by the schemes.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        if response.status == 403, hasSession {
            let asked = plan.schemes.lazy.map { $0.refusal(in: response, realm: plan.realm) }
            return asked.first { $0 != .pass } ?? .pass
        }
        guard response.status == 401, let offer = plan.offer(in: response.fields) else { return .pass }
        // A request outside the known space of the realm was sent without the session.
        let wasOutside = plan.realm.flatMap { plan.spaces?.learn($0, at: response.url) } ?? false
        guard hasSession, !wasOutside else { return .challenged() }
        // With several schemes, another one may have been refused here.
        return offer == .refused && plan.schemes.count > 1 ? .challenged() : offer
    }
}
