// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import InventedKind
import Secrets
import Settings
import TestSupport
import Testing

@testable import CountersignDaemon

@Suite("Sessions of a kind that is added in a folder of its own")
struct InventedKindTests {
    private func authenticator(latitude: Int = 51) throws -> Authenticator {
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: garden }]
            upstreams: { garden: { url: "http://127.0.0.1:1/" } }
            challenges:
              - { name: sun, upstream: garden, sundial: garden, latitude: \(latitude), credential: sun }
            """
        let (settings, problems) = Settings.parse(
            Array(text.utf8), file: "f", environment: [:], kinds: ChallengeKinds.all + [Sundial.self])
        let loaded = try #require(settings, "\(problems)")
        let site = LoginSite(loaded.upstreams[0].protected, loaded.challenges, LoginMaterial())
        return try #require(site.authenticators().logins.all.first)
    }

    /// The session of a login that met the dial's challenge.
    private func session(_ authenticator: Authenticator, _ credential: Credential) async throws -> Session {
        let url = try #require(WebURL("http://127.0.0.1:1/hour"))
        let challenge = ExaminedResponse(
            status: 401, fields: [.wwwAuthenticate: "Sundial dial=\"garden\", gnomon=\"12ft\""], url: url)
        let login = authenticator.login(LoginOccasion(scope: .empty, challenge: challenge))
        return try await login.logIn(
            Conversation(
                sideRequests: NoSideRequests(), credentials: FixedCredentials(["sun": credential.fields]),
                attempts: LocalGate(), state: MemoryState(), now: { 0 }, report: { _ in }))
    }

    private func shadow(_ session: Session, _ authenticator: Authenticator) throws -> String? {
        let request = SigningRequest(method: "GET", origin: authenticator.key.origin, target: "/hour")
        return try session.signer?.sign(request).fields.first?.value.revealText()
    }

    @Test("a session of an added kind is handed over with its signer, whose counter continues")
    func image() async throws {
        let authenticator = try authenticator()
        let credential = Credential(name: "sun", fields: ["shadow": Secret("long")])
        let session = try await session(authenticator, credential)
        #expect(try shadow(session, authenticator) == "12ft 1 51 GET http://127.0.0.1:1/hour  long")
        let image = try #require(
            SessionImage(authenticator.key, session, establishedAt: 0, configuration: [1], versions: [:]))
        let back = try #require(try SessionImages.decoded(SessionImages.encoded([image])).first)
        let next = try #require(back.session(credential: credential, codec: authenticator.codec))
        #expect(try shadow(next, authenticator) == "12ft 2 51 GET http://127.0.0.1:1/hour  long")
        #expect(back.session(credential: credential, codec: .none) == nil)
    }

    @Test("a session of an added kind is established again if a key of the kind has changed")
    func terms() throws {
        #expect(try authenticator().terms == authenticator().terms)
        #expect(try authenticator().terms != authenticator(latitude: 52).terms)
        #expect(try authenticator().terms.contains("kind=sundial\ncredential=sun\nsundial=garden\nlatitude=51\n"))
    }
}

/// For what sends nothing.
private struct NoSideRequests: SideRequests {
    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        throw SideRequestError(.originNotAllowed, reason: "nothing is sent here")
    }
}
