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

    @Test("they look at no pages")
    func pages() {
        #expect(!MobileFirstDetector().looksAtPages)
        #expect(!BearerDetector().looksAtPages)
    }
}
