// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension TokenGrant {
    /// The credential's field `token` as it is.
    package static let `static` = TokenGrant(
        rawValue: "static", neededFields: { _ in ["token"] }, asksNobody: true
    ) { $0.fixed }
}

extension TokenLogins {
    fileprivate var fixed: Authenticator {
        let login = StaticTokenLogin(
            key: latch(at: upstream.url.origin), placement: placement, retryRejectedAfter: retry,
            proof: challenge.proofAddress(at: upstream), realm: realm)
        return authenticator(BearerDetector(realm: realm, canGrow: false), scope: .empty) { _ in login }
    }
}
