// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("Detectors of tokens that are asked for")
struct DetectorTests {
    private func response(_ status: Int, _ fields: HTTPFields = [:]) throws -> ExaminedResponse {
        ExaminedResponse(status: status, fields: fields, url: try #require(WebURL("https://bank.example/a")))
    }

    @Test("each finds its own challenges only")
    func own() throws {
        let missing = try response(401, [.wwwAuthenticate: "Bearer realm=\"bank\""])
        let invalid = try response(401, [.wwwAuthenticate: "Bearer error=\"invalid_token\", realm=\"bank\""])
        let conflict = try response(409, [try #require(HTTPField.Name("MFP-Conflict")): "yes"])
        let basic = try response(401, [.wwwAuthenticate: "Basic realm=\"bank\""])
        let lacking = try response(403, [.wwwAuthenticate: "Bearer error=\"insufficient_scope\", scope=\"b a\""])

        let mobileFirst = MobileFirstDetector()
        #expect(mobileFirst.examine(missing, hasSession: false) == .challenge)
        #expect(mobileFirst.examine(invalid, hasSession: true) == .challenge)
        #expect(mobileFirst.examine(conflict, hasSession: true) == .conflict)
        #expect(mobileFirst.examine(basic, hasSession: false) == .notAChallenge)
        #expect(mobileFirst.examine(lacking, hasSession: true) == .insufficientScope(["a", "b"]))

        #expect(BearerDetector().examine(missing, hasSession: false) == .challenge)
        #expect(BearerDetector(realm: "bank").examine(invalid, hasSession: true) == .challenge)
        #expect(BearerDetector(realm: "other").examine(invalid, hasSession: true) == .notAChallenge)
        #expect(BearerDetector().examine(conflict, hasSession: true) == .notAChallenge)
        #expect(BearerDetector().examine(basic, hasSession: false) == .notAChallenge)
    }

    @Test("of several challenges for tokens the one of the realm counts")
    func realms() throws {
        let value = "Bearer realm=\"a\", Bearer realm=\"b\", error=\"invalid_request\""
        let both = try response(401, [.wwwAuthenticate: value])
        #expect(BearerDetector(realm: "a").examine(both, hasSession: false) == .challenge)
        #expect(BearerDetector(realm: "b").examine(both, hasSession: false) == .notAChallenge)
    }

    @Test("where no other token can be had, a scope that is lacking is the caller's answer")
    func fixed() throws {
        let lacking = try response(403, [.wwwAuthenticate: "Bearer error=\"insufficient_scope\", scope=\"b a\""])
        #expect(BearerDetector(canGrow: false).examine(lacking, hasSession: true) == .notAChallenge)
        #expect(BearerDetector().examine(lacking, hasSession: true) == .insufficientScope(["a", "b"]))
    }

    @Test("where a token's metadata is kept is nobody's business")
    func metadata() throws {
        let value = "Bearer resource_metadata=\"https://evil.example/.well-known/oauth-protected-resource\""
        #expect(BearerDetector().examine(try response(401, [.wwwAuthenticate: value]), hasSession: false) == .challenge)
    }

    @Test(
        "a registry names the scope of a request with 401 alone, and may say that the token is good and covers too little",
        arguments: [
            (#"realm="r",scope="repository:a:push,pull""#, false, .insufficientScope(["repository:a:pull,push"])),
            (#"realm="r",scope="repository:a:pull""#, true, .challenge), (#"realm="r""#, false, .challenge),
            (
                #"realm="r",scope="repository:a:pull",error="insufficient_scope""#, true,
                .insufficientScope(["repository:a:pull"])
            ),
            (#"realm="r",scope="repository:a:pull",error="invalid_token""#, true, .challenge),
            (#"realm="r",error="insufficient_scope""#, true, .notAChallenge),
            (#"realm="r",error="invalid_request""#, true, .notAChallenge), (#"scope="a""#, false, .notAChallenge),
        ] as [(String, Bool, ChallengeVerdict)])
    func registry(parameters: String, hasSession: Bool, verdict: ChallengeVerdict) throws {
        let asked = try response(401, [.wwwAuthenticate: "Bearer \(parameters)"])
        #expect(RegistryDetector().examine(asked, hasSession: hasSession) == verdict)
        #expect(RegistryDetector(realm: "other").examine(asked, hasSession: hasSession) == .notAChallenge)
        #expect(RegistryDetector().examine(try response(403, asked.fields), hasSession: hasSession) == .notAChallenge)
    }

    @Test("they look at no pages")
    func pages() {
        #expect(!MobileFirstDetector().looksAtPages)
        #expect(!BearerDetector().looksAtPages)
    }
}
