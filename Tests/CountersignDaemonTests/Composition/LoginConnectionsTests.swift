// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import Testing

@testable import ChallengeClient
@testable import CountersignDaemon

@Suite("TLS settings of logins")
struct LoginConnectionsTests {
    private static let bank = Origin(scheme: .https, host: "bank.example", port: 443)
    private static let server = Origin(scheme: .https, host: "id.example", port: 443)
    private static let other = Origin(scheme: .https, host: "other.example", port: 443)

    private func blob(_ text: String) -> Blob {
        let bytes = Array(text.utf8)
        return Blob(bytes.span)
    }

    private func challenge(_ name: String, url: String) -> ChallengeSettings {
        let token = TokenSettings(
            grant: .clientCredentials, url: WebURL(url), revocation: WebURL("https://other.example/revoke"))
        return ChallengeSettings(
            name: name, location: .upstream("bank"), credential: "c",
            kind: SchemeSettings(schemes: [.bearer], token: token))
    }

    private func plan(_ own: [String: ConnectionSettings]) -> UpstreamPlan {
        let base = WebURL(origin: Self.bank, path: "/")
        let site = LoginSite(
            ProtectedUpstream(name: "bank", url: base),
            [
                challenge("one", url: "https://id.example/token"), challenge("two", url: "https://id.example/token"),
                challenge("here", url: "https://bank.example/token"),
            ], LoginMaterial())
        let (logins, origins) = site.authenticators()
        var connections = ConnectionSettings()
        connections.authorities = blob("bank-ca")
        connections.certificate = blob("bank-certificate")
        connections.key = blob("bank-key")
        return UpstreamPlan(
            name: "bank", base: base, connections: connections, logins: logins, loginOrigins: origins,
            loginConnections: own)
    }

    @Test("a login's own certificate goes to the servers of its token, and nothing else does")
    func own() {
        var own = ConnectionSettings()
        own.certificate = blob("own")
        let plan = plan(["one": own])
        #expect(plan.connections(to: Self.server, of: "one") == own)
        #expect(plan.connections(to: Self.other, of: "one") == own, "the revocation")
        // Another login at the same server, and the login itself elsewhere.
        for (origin, login) in [(Self.server, "two"), (Self.other, "two"), (Self.server, "")] {
            let settings = plan.connections(to: origin, of: login)
            #expect(settings.certificate == nil && settings.key == nil && settings.authorities == blob("bank-ca"))
        }
        #expect(plan.connections(to: Self.bank, of: "one") == plan.connections)
        // A diagnosis of the origin finds them.
        #expect(plan.connections(to: Self.server, of: nil) == own)
    }

    @Test("a token server at the upstream's own origin gets what is configured for the token")
    func sameOrigin() {
        var own = ConnectionSettings()
        own.certificate = blob("own")
        let plan = plan(["here": own])
        #expect(plan.connections(to: Self.bank, of: "here") == own)
        #expect(plan.connections(to: Self.bank, of: "one") == plan.connections)
    }
}
