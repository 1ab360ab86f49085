// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import TestSupport
import Testing

@Suite("Detectors of tokens that are asked for")
struct DetectorTests {
    private func response(_ status: Int, _ fields: HTTPFields = [:]) throws -> ExaminedResponse {
        ExaminedResponse(status: status, fields: fields, url: try #require(WebURL("https://bank.example/a")))
    }

    @Test("each token detector finds its own challenges only")
    func own() throws {
        let missing = try response(401, [.wwwAuthenticate: "Bearer realm=\"bank\""])
        let invalid = try response(401, [.wwwAuthenticate: "Bearer error=\"invalid_token\", realm=\"bank\""])
        let conflict = try response(409, [try #require(HTTPField.Name("MFP-Conflict")): "yes"])
        let basic = try response(401, [.wwwAuthenticate: "Basic realm=\"bank\""])
        let lacking = try response(403, [.wwwAuthenticate: "Bearer error=\"insufficient_scope\", scope=\"b a\""])

        let mobileFirst = MobileFirstDetector()
        #expect(mobileFirst.examine(missing, hasSession: false) == .challenged())
        #expect(mobileFirst.examine(invalid, hasSession: true) == .challenged())
        #expect(mobileFirst.examine(conflict, hasSession: true) == .replay)
        #expect(mobileFirst.examine(basic, hasSession: false) == .pass)
        #expect(mobileFirst.examine(lacking, hasSession: true) == .challenged(scope: ["a", "b"]))

        #expect(BearerDetector().examine(missing, hasSession: false) == .challenged())
        #expect(BearerDetector(realm: "bank").examine(invalid, hasSession: true) == .challenged())
        #expect(BearerDetector(realm: "other").examine(invalid, hasSession: true) == .pass)
        #expect(BearerDetector().examine(conflict, hasSession: true) == .pass)
        #expect(BearerDetector().examine(basic, hasSession: false) == .pass)
    }

    @Test("of several Bearer challenges, the one with the configured realm counts")
    func realms() throws {
        let value = "Bearer realm=\"a\", Bearer realm=\"b\", error=\"invalid_request\""
        let both = try response(401, [.wwwAuthenticate: value])
        #expect(BearerDetector(realm: "a").examine(both, hasSession: false) == .challenged())
        #expect(BearerDetector(realm: "b").examine(both, hasSession: false) == .challenged())
        #expect(BearerDetector(realm: "c").examine(both, hasSession: false) == .pass)
    }

    @Test(
        "a 401 with Bearer asks for a token, whatever its error says",
        arguments: [
            "Bearer realm=\"oauth2-resource\", error=\"unauthorized\", error_description=\"Full authentication is required\"",
            "Bearer error=\"invalid_token\"", "Bearer error=\"invalid_request\"", "Bearer error=\"insufficient_scope\"",
            "Bearer error=\"missing_token\"", "Bearer error=\"\"",
            "Bearer error=invalid_token error_description=Not here",
        ])
    func errors(value: String) throws {
        let asked = try response(401, [.wwwAuthenticate: value])
        for hasSession in [false, true] {
            #expect(BearerDetector().examine(asked, hasSession: hasSession) == .challenged())
            #expect(MobileFirstDetector().examine(asked, hasSession: hasSession) == .challenged())
        }
        #expect(BearerDetector(canGrow: false).examine(asked, hasSession: false) == .challenged())
        #expect(BearerDetector(canGrow: false).examine(asked, hasSession: true) == .refused)
    }

    @Test("a 401 that names the missing scope asks for a larger one, as a 403 does")
    func lackingScope() throws {
        let asked = try response(401, [.wwwAuthenticate: "Bearer error=\"insufficient_scope\", scope=\"b a\""])
        #expect(BearerDetector().examine(asked, hasSession: true) == .challenged(scope: ["a", "b"]))
        #expect(BearerDetector().examine(asked, hasSession: false) == .challenged())
    }

    @Test("a response that a configured matcher names asks for a token, although it names no scheme")
    func marked() throws {
        let plain = try response(401, [.contentType: "text/plain"])
        let detector = BearerDetector(markers: [ResponseMatcher(statuses: [401])])
        #expect(BearerDetector().examine(plain, hasSession: false) == .pass)
        for hasSession in [false, true] {
            #expect(detector.examine(plain, hasSession: hasSession) == .challenged())
        }
        #expect(detector.examine(try response(403, [:]), hasSession: false) == .pass)
        // A fixed token would be the one just refused.
        let fixed = BearerDetector(canGrow: false, markers: [ResponseMatcher(statuses: [401])])
        #expect(fixed.examine(plain, hasSession: true) == .refused)
        let error = BearerDetector(markers: [
            ResponseMatcher(statuses: [200], json: [JSONMatcher(pointer: try #require(JSONPointer("/error")))])
        ])
        var answer = try response(200, [.contentType: "application/json"])
        #expect(error.examine(answer, hasSession: false) == .needsBody)
        #expect(error.filter.readsBodies && error.filter.admits(status: 200))
        answer.body = Array(#"{"error":"login"}"#.utf8)
        #expect(error.examine(answer, hasSession: false) == .challenged())
        answer.body = Array(#"{"data":[]}"#.utf8)
        #expect(error.examine(answer, hasSession: false) == .pass)
    }

    @Test("if no other token is available, insufficient_scope is passed to the caller")
    func fixed() throws {
        let lacking = try response(403, [.wwwAuthenticate: "Bearer error=\"insufficient_scope\", scope=\"b a\""])
        #expect(BearerDetector(canGrow: false).examine(lacking, hasSession: true) == .pass)
        #expect(BearerDetector().examine(lacking, hasSession: true) == .challenged(scope: ["a", "b"]))
    }

    @Test("if no other token is available, a refused token leads to no login")
    func fixedIsRefused() throws {
        for value in ["Bearer realm=\"bank\"", "Bearer error=\"invalid_token\""] {
            let asked = try response(401, [.wwwAuthenticate: value])
            #expect(BearerDetector(canGrow: false).examine(asked, hasSession: true) == .refused)
            #expect(BearerDetector(canGrow: false).examine(asked, hasSession: false) == .challenged())
        }
    }

    @Test("resource_metadata of a Bearer challenge is ignored")
    func metadata() throws {
        let value = "Bearer resource_metadata=\"https://evil.example/.well-known/oauth-protected-resource\""
        let asked = try response(401, [.wwwAuthenticate: value])
        #expect(BearerDetector().examine(asked, hasSession: false) == .challenged())
    }

    @Test(
        "a registry names the scope of a request with 401 alone, and may say that the token is good and covers too little",
        arguments: [
            (#"realm="r",scope="repository:a:push,pull""#, false, .challenged(scope: ["repository:a:pull,push"])),
            (#"realm="r",scope="repository:a:pull""#, true, .challenged()), (#"realm="r""#, false, .challenged()),
            (
                #"realm="r",scope="repository:a:pull",error="insufficient_scope""#, true,
                .challenged(scope: ["repository:a:pull"])
            ),
            (#"realm="r",scope="repository:a:pull",error="invalid_token""#, true, .challenged()),
            (#"realm="r",error="insufficient_scope""#, true, .challenged()), (#"realm="r""#, true, .challenged()),
            (#"realm="r",error="insufficient_scope""#, false, .challenged()),
            (#"realm="r",error="invalid_request""#, true, .challenged()), (#"scope="a""#, false, .pass),
            (
                #"realm="r",error="unauthorized",scope="repository:a:pull""#, false,
                .challenged(scope: ["repository:a:pull"])
            ),
        ] as [(String, Bool, Challenge)])
    func registry(parameters: String, hasSession: Bool, challenge: Challenge) throws {
        let asked = try response(401, [.wwwAuthenticate: "Bearer \(parameters)"])
        #expect(RegistryDetector().examine(asked, hasSession: hasSession) == challenge)
        #expect(RegistryDetector(realm: "other").examine(asked, hasSession: hasSession) == .pass)
        #expect(RegistryDetector().examine(try response(403, asked.fields), hasSession: hasSession) == .pass)
    }

    @Test("token detectors do not read bodies")
    func pages() {
        #expect(MobileFirstDetector().filter == .statusesOfChallenges)
        #expect(BearerDetector().filter == .statusesOfChallenges)
    }
}

@Suite("The responses that detectors are shown")
struct ResponseFilterTests {
    private func admits(_ filter: ResponseFilter, _ status: Int, _ type: String?) -> Bool {
        filter.admits(status: status, contentType: Array((type ?? "").utf8).span)
    }

    @Test("401, 403 and 409 are examined by every detector, whatever their type", arguments: [401, 403, 409])
    func challenges(status: Int) {
        for filter in [.statusesOfChallenges, ResponseFilter([ResponseMatcher(statuses: [302])]), .everything] {
            #expect(admits(filter, status, nil))
            #expect(admits(filter, status, "application/json"))
            #expect(filter.admits(status: status))
        }
        #expect(!admits(.statusesOfChallenges, 200, "text/html"))
        #expect(!ResponseFilter.statusesOfChallenges.readsBodies)
    }

    @Test("text and form matchers examine pages only, however their type is written")
    func pages() {
        for matcher in [ResponseMatcher(bodyContains: ["login"]), ResponseMatcher(formAction: "login")] {
            let filter = ResponseFilter([matcher])
            #expect(filter.readsBodies)
            for type in ["text/html", "Text/HTML;charset=utf-8", " text/html ; a=b", "application/xhtml+xml"] {
                #expect(admits(filter, 200, type), "\(type)")
            }
            for type in [nil, "", "text/htm", "text/html5", "text/plain", "application/json"] {
                #expect(!admits(filter, 200, type), "\(type ?? "none")")
            }
            #expect(filter.admits(status: 200), "several types are judged by the detector")
        }
    }

    @Test("redirect matchers examine redirects only, and status matchers that status")
    func heads() {
        let redirect = ResponseFilter([ResponseMatcher(redirectTo: ["/login"])])
        #expect(admits(redirect, 302, nil) && admits(redirect, 307, "text/plain"))
        #expect(!admits(redirect, 200, "text/html") && !redirect.readsBodies)
        let status = ResponseFilter([ResponseMatcher(statuses: [200, 500], contentTypes: ["application/json"])])
        #expect(admits(status, 500, "application/json") && admits(status, 200, "application/json; charset=utf-8"))
        #expect(!admits(status, 500, "text/html") && !admits(status, 404, "application/json"))
        #expect(admits(redirect.union(status), 302, nil) && admits(redirect.union(status), 200, "application/json"))
    }

    @Test("the response filter admits every response that its detector recognizes")
    func complete() throws {
        var dice = SplitMix(state: 17)
        let types = [
            "text/html", "TEXT/html; charset=x", "application/json", "application/xhtml+xml", "", "text/ html",
        ]
        let statuses = [200, 204, 302, 307, 401, 403, 404, 500]
        let field = try #require(HTTPField.Name("X-Login"))
        var found = 0
        for _ in 0..<20_000 {
            var matcher = ResponseMatcher()
            if dice.next() % 3 == 0 { matcher.statuses = [try #require(statuses.randomElement(using: &dice))] }
            if dice.next() % 3 == 0 { matcher.redirectTo = ["/login"] }
            if dice.next() % 4 == 0 { matcher.redirectParameter = .init(name: "op", value: "login") }
            if dice.next() % 3 == 0 {
                matcher.contentTypes = [try #require(["text/html", "application/json"].randomElement(using: &dice))]
            }
            if dice.next() % 3 == 0 { matcher.bodyContains = ["sign in"] }
            if dice.next() % 5 == 0 { matcher.fields = [FieldMatcher(name: field)] }
            if dice.next() % 5 == 0 { matcher.cookies = ["session"] }
            let detector = GatewayDetector(GatewayRules(detect: [matcher], steps: []))

            var fields = HTTPFields()
            let type = try #require(types.randomElement(using: &dice))
            if !type.isEmpty { fields[.contentType] = type }
            if dice.next() % 2 == 0 { fields[.location] = "/Login?op=login" }
            if dice.next() % 2 == 0 { fields[field] = "yes" }
            if dice.next() % 2 == 0 { fields[.setCookie] = "session=1" }
            let status = try #require(statuses.randomElement(using: &dice))
            let response = ExaminedResponse(
                status: status, fields: fields, url: try #require(WebURL("https://bank.example/a")))
            guard detector.examine(response, hasSession: false) != .pass else { continue }
            found += 1
            #expect(admits(detector.filter, status, fields[.contentType]), "\(matcher), \(response)")
            #expect(detector.filter.admits(status: status))
        }
        #expect(found > 1000)
    }
}
