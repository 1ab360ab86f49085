// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Login with the credential's field `token` (`grant: static`). No server is asked before the resource itself.
public struct StaticTokenLogin: SessionLogin {
    /// The challenge, the credential, and the upstream's origin.
    public let key: LatchKey
    /// The field that carries the token.
    public let placement: TokenPlacement
    /// Time after which a latch closed by a rejection opens by itself; `nil` if it never does.
    public let retryRejectedAfter: Duration?
    /// An address that certainly accepts the token (`prove-at`).
    public let proof: WebURL?
    /// The detector of its challenges.
    let detector: BearerDetector
    /// The response that led to the login or to its confirmation, if any.
    let challenge: ExaminedResponse?

    /// Creates a login.
    public init(
        key: LatchKey, placement: TokenPlacement = TokenPlacement(), retryRejectedAfter: Duration? = nil,
        proof: WebURL? = nil, realm: String? = nil, challenge: ExaminedResponse? = nil
    ) {
        self.proof = proof
        self.challenge = challenge
        detector = BearerDetector(realm: realm, canGrow: false)
        self.key = key
        self.placement = placement
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Looks up the token. Its session is unverified until the first response to a request with it.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.lookUp(key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        let token = try use.field("token")
        guard TokenPlacement.canCarry(token.revealBytes()) else {
            throw use.unusable(
                "token",
                "cannot be sent in a field: it is empty, too long, or holds a space, a line break or a non-ASCII "
                    + "character. Store only the token.")
        }
        return Session(unverified: use, fields: [placement.field(carrying: token)])
    }

    /// Checks if an address still accepts the token of `held`: `prove-at`, or another one that accepted it. Returns
    /// `.over` if the token is refused there too, or was never accepted at any address.
    public func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        guard let use = held.use else { return .over }
        let accepted = AcceptedAddresses(
            of: use, at: key.origin, proof: proof, refusal: challenge?.refusal, in: conversation)
        return await accepted.confirm(in: conversation) { address in
            switch await answer(at: address, with: nil, conversation) {
            case nil: return .silent
            case .challenged?: break
            default: return .open
            }
            return switch await answer(at: address, with: held, conversation) {
            case .refused?: .refused
            case nil: .unclear
            default: .accepted
            }
        }
    }

    private func answer(
        at address: WebURL, with session: Session?, _ conversation: Conversation
    ) async -> Challenge? {
        let occasion = SchemeOccasion(name: key.challenge, url: address, use: nil, conversation: conversation)
        guard let response = try? await SchemeProbe(address, occasion).ask(with: session) else { return nil }
        let examined = ExaminedResponse(status: response.status, fields: response.fields, url: address)
        return detector.examine(examined, hasSession: session != nil)
    }
}

extension TokenGrant {
    /// The credential's field `token` as it is.
    package static let `static` = TokenGrant(
        rawValue: "static", neededFields: { _ in ["token"] }, asksNobody: true
    ) { $0.fixed }
}

extension TokenLogins {
    fileprivate var fixed: Authenticator {
        let (key, proof) = (latch(at: upstream.url.origin), challenge.proofAddress(at: upstream))
        return authenticator(BearerDetector(realm: realm, canGrow: false, markers: token.detect), scope: .empty) {
            StaticTokenLogin(
                key: key, placement: placement, retryRejectedAfter: retry, proof: proof, realm: realm,
                challenge: $0.challenge)
        }
    }
}
