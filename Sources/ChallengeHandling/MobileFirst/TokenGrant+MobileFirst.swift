// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension TokenGrant {
    /// A confidential client of a MobileFirst server.
    package static let mobileFirst = TokenGrant(
        rawValue: "mobilefirst", neededFields: { clientCredentials.neededFields($0) },
        endpoint: { tokenEndpoint(of: $0) }
    ) { $0.mobileFirst }

    /// The token endpoint of an upstream's own MobileFirst server, or where that would be.
    fileprivate static func tokenEndpoint(of upstream: ProtectedUpstream) -> WebURL {
        let api = upstream.mobileFirst?.api ?? WebURL(origin: upstream.url.origin, path: "/mfp/api")
        return api.appending(path: "az/v1/token")
    }
}

extension TokenLogins {
    fileprivate var mobileFirst: Authenticator {
        let url = token.url ?? TokenGrant.tokenEndpoint(of: upstream)
        let (key, retry) = (latch(at: url.origin), retry)
        return authenticator(BearerDetector(realm: realm), servers: [url]) { occasion in
            ConfidentialClientLogin(tokenURL: url, key: key, scope: occasion.scope, retryRejectedAfter: retry)
        }
    }
}
