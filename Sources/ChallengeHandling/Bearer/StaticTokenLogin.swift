// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Uses the credential's field `token` as it is (`grant: static`): no server is asked before the resource itself.
public struct StaticTokenLogin: SessionLogin {
    /// The challenge, the credential, and the upstream's origin.
    public let key: LatchKey
    /// Where the token goes.
    public let placement: TokenPlacement
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public let retryRejectedAfter: Duration?
    /// An address that the token opens for certain (`prove-at`).
    public let proof: WebURL?
    /// What its challenges are known by.
    let detector: BearerDetector

    /// A login.
    public init(
        key: LatchKey, placement: TokenPlacement = TokenPlacement(), retryRejectedAfter: Duration? = nil,
        proof: WebURL? = nil, realm: String? = nil
    ) {
        self.proof = proof
        detector = BearerDetector(realm: realm, canGrow: false)
        self.key = key
        self.placement = placement
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Looks the token up. What it is worth, the first answer to a request with it tells.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.look(up: key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        let token = try use.field("token")
        guard TokenPlacement.canCarry(token.revealBytes()) else {
            throw use.unusable(
                "token",
                "cannot stand in a field: it is empty, too long, or holds a space, a line's end or a sign beyond "
                    + "ASCII. Store the token alone.")
        }
        return Session(unproven: use, fields: [placement.field(carrying: token)])
    }

    /// Asks if the token of `held` still opens an address: `prove-at`, or where it was accepted last. `.over`: it does not, or it never
    /// opened any.
    public func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        guard let use = held.use else { return .over }
        var address = proof
        if address == nil {
            guard let mark = use.acceptance(in: conversation) else { return .over }
            address = mark.path.map { WebURL(origin: key.origin, path: $0) }
        }
        guard let address else { return .unknown }
        // First without: an address that has become open proves nothing.
        guard case .challenged? = await challenge(at: address, with: nil, conversation) else { return .unknown }
        switch await challenge(at: address, with: held, conversation) {
        case .refused?: return .over
        case nil: return .unknown
        default:
            use.accept(at: address.path, in: conversation)
            return .stillGood
        }
    }

    private func challenge(
        at address: WebURL, with session: Session?, _ conversation: Conversation
    ) async -> Challenge? {
        let occasion = SchemeOccasion(name: key.challenge, url: address, use: nil, conversation: conversation)
        guard let response = try? await SchemeProbe(address, occasion).ask(with: session) else { return nil }
        let examined = ExaminedResponse(status: response.status, fields: response.fields, url: address)
        return detector.examine(examined, hasSession: session != nil)
    }
}
