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

    /// A login.
    public init(key: LatchKey, placement: TokenPlacement = TokenPlacement(), retryRejectedAfter: Duration? = nil) {
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
}
