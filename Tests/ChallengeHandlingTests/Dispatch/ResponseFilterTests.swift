// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import TestSupport
import Testing

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
