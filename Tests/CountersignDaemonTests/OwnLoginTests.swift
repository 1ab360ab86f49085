// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import CountersignDaemon
@testable import Settings

@Suite("Logins by handlers of the program's own", .serialized)
struct OwnLoginTests {
    private struct Gateway: GatewayChallengeHandler {
        let gatewayName = "inner"

        func canHandleResponse(_ response: ExaminedResponse) -> Bool { response.status == 418 }
        func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer { .submitSuccess }
    }

    private struct Check: SecurityCheckChallengeHandler {
        let securityCheck = "PinCodeAttempts"

        func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
            .cancel(reason: "no")
        }
    }

    private func logins(_ challenges: String) throws -> [Authenticator] {
        OwnHandlers.set([
            "gateway": .gateway(Gateway()), "check": .securityCheck(Check()),
            "basic": .challenges(BasicChallengeHandler()),
        ])
        defer { OwnHandlers.set([:]) }
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: a }]
            upstreams:
              a: { url: "http://127.0.0.1:1/", mobilefirst: { application: x, platform: ios, version: "1" } }
            challenges: \(challenges)
            """
        let (settings, problems) = Settings.parse(
            Array(text.utf8), file: "f", environment: [:], handlers: OwnHandlers.names)
        let loaded = try #require(settings, "\(problems)")
        return LoginSite(loaded.upstreams[0].protected, loaded.challenges, LoginMaterial()).authenticators().logins.all
    }

    @Test("a gateway login by an own handler has the challenge's name and recognises the handler's page")
    func gateway() throws {
        let logins = try logins("[{ name: portal, upstream: a, handler: gateway }]")
        let login = try #require(logins.first { $0.name == "portal" })
        let url = try #require(WebURL("http://127.0.0.1:1/"))
        let detector = try #require(login.trigger.detector)
        #expect(detector.examine(ExaminedResponse(status: 418, url: url), hasSession: false) == .challenged())
        #expect(detector.examine(ExaminedResponse(status: 200, url: url), hasSession: false) == .pass)
        // The same after a reload, so that its session is.
        #expect(login.key.credential.isEmpty)
    }

    @Test("a login by an own handler for HTTP challenges has the challenge's name")
    func challenges() throws {
        #expect(try logins("[{ name: b, at: \"127.0.0.1:1/*\", handler: basic }]").contains { $0.name == "b" })
    }

    @Test("an own handler for a security check is called by the upstream's MobileFirst client")
    func securityCheck() throws {
        let logins = try logins("[{ name: pin, upstream: a, handler: check }]")
        #expect(logins.map(\.isOfUpstream) == [true])
        #expect(logins[0].asks == ["pin"])
    }
}
