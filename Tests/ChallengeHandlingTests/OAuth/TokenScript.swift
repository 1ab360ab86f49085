// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

/// A scripted token endpoint, and logins that use it.
enum TokenScript {
    static let address = "https://id.example.com/token"
    static let origin = Origin(scheme: .https, host: "id.example.com")
    static let key = LatchKey(origin: origin, challenge: "api", credential: "api-client")

    /// Credential with every field that a grant may need.
    static let client = credential()

    static func credential(_ changes: [String: String?] = [:]) -> Credential {
        var fields: [String: String?] = [
            "client-id": "client:1", "client-secret": "s3cret+/ä", "username": "ann-u", "password": "pass&word",
            "refresh-token": "refresh-1", "private-key": "PEM", "token": "static-token",
        ]
        fields.merge(changes) { $1 }
        return Credential(name: "api-client", fields: fields.compactMapValues { $0.map { Secret($0) } })
    }

    static func configuration(
        _ grant: TokenConfiguration.Grant = .clientCredentials,
        _ change: (inout TokenConfiguration) throws -> Void = { _ in }
    ) throws -> TokenConfiguration {
        var configuration = TokenConfiguration(url: try #require(WebURL(address)), grant: grant)
        try change(&configuration)
        return configuration
    }

    static func login(
        _ configuration: TokenConfiguration, scope: String = "", refreshTokens: RefreshTokens? = nil
    ) -> TokenLogin {
        TokenLogin(
            configuration, key: key, scope: Scope(text: scope), keys: ScriptedKeys(),
            refreshTokens: refreshTokens ?? RefreshTokens(credential: "api-client", origin: origin))
    }

    /// Returns a request of that grant, and a token with a lifetime of a minute.
    static func asked(
        _ grant: String = "client_credentials", location: SourceLocation = #_sourceLocation,
        where isExpected: @escaping @Sendable (SideRequest) -> Bool = { _ in true }
    ) -> ScriptedStep {
        ScriptedStep(.post, address, answering(), location: location) { request in
            request.form("grant_type") == grant && request.fields[.accept] == "application/json" && isExpected(request)
        }
    }

    static func answering(
        _ body: String = #"{"access_token":"token-1","token_type":"Bearer","expires_in":60}"#
    ) -> Result<SideResponse, SideRequestError> {
        .success(SideResponse(status: 200, body: Array(body.utf8)))
    }
}

extension LoginRig {
    /// Returns a rig with the client's credential.
    static func tokens(
        _ steps: [ScriptedStep], _ credential: Credential = TokenScript.client, store: MemoryStore = MemoryStore(),
        latches: LocalGate = LocalGate()
    ) -> LoginRig {
        LoginRig(steps, credentials: [credential], store: store, latches: latches)
    }
}
