// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Testing

@testable import ChallengeHandling

@Suite("Answers that may conceal a login page")
struct ConcealedPageTests {
    private func conceals(
        _ rules: [ResponseMatcher], _ status: Int, _ type: String?, head isHead: Bool = false,
        _ fields: HTTPFields = [:]
    ) -> Bool {
        var fields = fields
        if let type { fields[.contentType] = type }
        let response = ExaminedResponse(
            status: status, fields: fields, method: isHead ? .head : .get,
            url: WebURL(origin: Origin(scheme: .http, host: "h"), path: "/"))
        return GatewayDetector(GatewayRules(detect: rules, steps: [])).mayConceal(response)
    }

    private let form = [ResponseMatcher(formAction: "j_security_check")]

    @Test("the answer to HEAD conceals a page of its type and status")
    func head() {
        #expect(conceals(form, 200, "text/html", head: true) && conceals(form, 404, "Text/HTML; charset=x", head: true))
        #expect(conceals(form, 200, nil, head: true))
        #expect(!conceals(form, 200, "image/png", head: true) && !conceals(form, 302, "text/html", head: true))
        #expect(!conceals(form, 503, "text/html", head: true) && !conceals(form, 429, "text/html", head: true))
        let login = [ResponseMatcher(statuses: [401], formAction: "/login")]
        #expect(conceals(login, 401, "text/html", head: true) && !conceals(login, 200, "text/html", head: true))
    }

    @Test("a part conceals a page of its type, and parts of several types conceal any page")
    func parts() throws {
        #expect(conceals(form, 206, "text/html") && conceals(form, 206, nil))
        #expect(conceals(form, 206, "multipart/byteranges; boundary=x"))
        #expect(!conceals(form, 206, "application/octet-stream"))
        let json = [ResponseMatcher(json: [JSONMatcher(pointer: try #require(JSONPointer("/error")))])]
        #expect(conceals(json, 206, "application/json") && !conceals(json, 206, "text/html"))
    }

    @Test("304, 412 and 416 conceal any page of a status that has preconditions and parts", arguments: [304, 412, 416])
    func everything(status: Int) {
        #expect(conceals(form, status, nil) && conceals(form, status, "application/x-tar", head: true))
        #expect(conceals([ResponseMatcher(statuses: [200], cookies: ["S"])], status, nil))
        #expect(!conceals([ResponseMatcher(statuses: [401], bodyContains: ["x"])], status, nil))
        #expect(!conceals([ResponseMatcher(statuses: [302], redirectTo: ["/login"])], status, nil))
    }

    @Test("a whole page conceals nothing, whatever its status", arguments: [200, 201, 401, 403, 404, 500])
    func whole(status: Int) {
        #expect(!conceals(form, status, "text/html"))
    }

    @Test("the answer to a request with effects conceals nothing: it is not asked for again")
    func effects() {
        let response = ExaminedResponse(
            status: 412, method: .put, url: WebURL(origin: Origin(scheme: .http, host: "h"), path: "/"))
        #expect(!GatewayDetector(.jSecurityCheck).mayConceal(response))
    }

    @Test("challenges in status and fields need no look")
    func others() {
        let response = ExaminedResponse(
            status: 304, url: WebURL(origin: Origin(scheme: .http, host: "h"), path: "/"))
        #expect(!BearerDetector(realm: nil).mayConceal(response))
        #expect(GatewayDetector(.passwordForm).mayConceal(response) && GatewayDetector(.webSEAL).mayConceal(response))
    }
}
