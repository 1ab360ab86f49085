// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling

@Suite("Login forms of handlers")
struct LoginFormTests {
    private func request(_ answer: GatewayAnswer, from page: String = "https://a.example/app/login?x") throws
        -> SideRequest?
    {
        guard case .submitForm(let form) = answer else { return nil }
        return form.request(from: ExaminedResponse(status: 200, url: try #require(WebURL(page))))
    }

    @Test("a login form is sent with POST and a timeout of 10 000 ms by default")
    func defaults() throws {
        let request = try #require(try request(.submitLoginForm(url: "/in", parameters: ["a": "1 2", "b": "ä"])))
        #expect(request.method == .post)
        #expect(request.timeout == .milliseconds(10_000))
        #expect(request.body?.revealText() == "a=1+2&b=%C3%A4")
        #expect(request.fields[.contentType] == "application/x-www-form-urlencoded")
    }

    @Test("a login form's timeout of zero or less is the default", arguments: [0, -1, 3000])
    func timeout(milliseconds: Int) throws {
        let request = try #require(try request(.submitLoginForm(url: "/in", timeout: .milliseconds(milliseconds))))
        #expect(request.timeout == .milliseconds(milliseconds > 0 ? milliseconds : 10_000))
    }

    @Test("a login form with GET appends its parameters to the query")
    func get() throws {
        let request = try #require(
            try request(.submitLoginForm(url: "in?a=0", parameters: ["b": "1"], method: .get)))
        #expect("\(request.url)" == "https://a.example/app/in?a=0&b=1")
        #expect(request.body == nil)
    }

    @Test(
        "a login form's address is absolute or relative to the page",
        arguments: [
            ("in", "https://a.example/app/in"), ("/in", "https://a.example/in"), ("../in", "https://a.example/in"),
            ("https://b.example/in", "https://b.example/in"), ("", "https://a.example/app/login?x"),
        ])
    func addresses(url: String, meant: String) throws {
        #expect(try request(.submitLoginForm(url: url)).map { "\($0.url)" } == meant)
    }

    @Test("a login form sends its headers, and allows only POST and GET")
    func headersAndMethods() throws {
        let request = try request(.submitLoginForm(url: "/in", headers: [.acceptLanguage: "de"]))
        #expect(request?.fields[.acceptLanguage] == "de")
        #expect(try self.request(.submitLoginForm(url: "/in", method: .put)) == nil)
    }
}
