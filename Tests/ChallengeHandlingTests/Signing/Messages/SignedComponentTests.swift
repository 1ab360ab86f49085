// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("Components of message signatures")
struct SignedComponentTests {
    @Test(
        "a derived component has the value of RFC 9421 section 2.2",
        arguments: [
            ("@method", "/path?param=value", "\"@method\": POST"),
            ("@target-uri", "/path?param=value", "\"@target-uri\": https://www.example.com/path?param=value"),
            ("@target-uri", "*", "\"@target-uri\": https://www.example.com"),
            ("@authority", "/path", "\"@authority\": www.example.com"), ("@scheme", "/path", "\"@scheme\": https"),
            ("@request-target", "/path?param=value", "\"@request-target\": /path?param=value"),
            ("@path", "/path%2f;a//./b?param=value", "\"@path\": /path%2f;a//./b"), ("@path", "*", "\"@path\": /"),
            ("@query", "/path?param=value&foo=bar&baz=bat%2Dman", "\"@query\": ?param=value&foo=bar&baz=bat%2Dman"),
            ("@query", "/path?queryString", "\"@query\": ?queryString"), ("@query", "/path", "\"@query\": ?"),
            ("@query", "/path??a?", "\"@query\": ??a?"),
            (
                "\"@query-param\";name=\"baz\"", "/path?param=value&foo=bar&baz=batman&qux=",
                "\"@query-param\";name=\"baz\": batman"
            ),
            ("\"@query-param\";name=\"qux\"", "/path?baz=batman&qux=", "\"@query-param\";name=\"qux\": "),
            (
                "\"@query-param\";name=\"var\"", "/p?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus",
                "\"@query-param\";name=\"var\": this%20is%20a%20big%0Amultiline%20value"
            ),
            (
                "\"@query-param\";name=\"bar\"", "/p?x&bar=with+plus+~",
                "\"@query-param\";name=\"bar\": with%20plus%20%7E"
            ),
            (
                "\"@query-param\";name=\"fa%C3%A7ade%22%3A%20\"", "/p?fa%C3%A7ade%22%3A%20=something",
                "\"@query-param\";name=\"fa%C3%A7ade%22%3A%20\": something"
            ),
            ("\"@query-param\";name=\"a\"", "/p?%61=%zz%ff", "\"@query-param\";name=\"a\": %25zz%EF%BF%BD"),
        ])
    func derived(component: String, target: String, expected: String) throws {
        let line = try MessageBench.line(component, of: MessageBench.request("POST", target))
        #expect(line == expected)
    }

    @Test(
        "the authority is the Host that is sent, in lower case and without the default port",
        arguments: [
            ("WWW.Example.COM", "www.example.com"), ("www.example.com:443", "www.example.com"),
            ("www.example.com:80", "www.example.com:80"), ("www.example.com:8443", "www.example.com:8443"),
            ("www.example.com:", "www.example.com"), ("[::1]:443", "[::1]"), ("[::1]", "[::1]"),
        ])
    func authority(host: String, expected: String) throws {
        let line = try MessageBench.line("@authority", of: MessageBench.request(fields: ["Host": host]))
        #expect(line == "\"@authority\": \(expected)")
        let own = SigningRequest(method: "GET", origin: Origin(scheme: .http, host: "a", port: 81), target: "/")
        #expect(try MessageBench.line("@authority", of: own) == "\"@authority\": a:81")
    }

    @Test(
        "a field has the value of RFC 9421 section 2.1",
        arguments: [
            ("x-ows-header", "\"x-ows-header\": Leading and trailing whitespace."),
            ("cache-control", "\"cache-control\": max-age=60, must-revalidate"),
            ("x-empty-header", "\"x-empty-header\": "),
            ("\"priority\";sf", "\"priority\";sf: a=1, b=2;x=1;y=2, c=(a b c), d"),
            ("\"priority\";key=\"a\"", "\"priority\";key=\"a\": 1"),
            ("\"priority\";key=\"b\"", "\"priority\";key=\"b\": 2;x=1;y=2"),
            ("\"priority\";key=\"c\"", "\"priority\";key=\"c\": (a b c)"),
            ("\"priority\";key=\"d\"", "\"priority\";key=\"d\": ?1"),
            ("priority;key=\"a\";sf", "\"priority\";sf;key=\"a\": 1"),
            (
                "\"example-header\";bs",
                "\"example-header\";bs: :dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:"
            ),
            ("\"x-bytes\";bs", "\"x-bytes\";bs: :w6k=:"), ("host", "\"host\": www.example.com"),
        ])
    func fields(component: String, expected: String) throws {
        let request = MessageBench.request(fields: [
            "Host": "www.example.com", "X-OWS-Header": "  \tLeading and trailing whitespace.   ",
            "Cache-Control": "max-age=60",
            "X-Empty-Header": "", "CACHE-control": "    must-revalidate",
            "Priority": "  a=1,    b=2;x=1;y=2,   c=(a   b   c), d", "Example-Header": "value, with, lots",
            "Example-Header": "of, commas", "X-Bytes": "\u{E9}",
        ])
        #expect(try MessageBench.line(component, of: request) == expected)
    }

    @Test(
        "a component that a request does not have ends the request with a reason",
        arguments: [
            ("x-absent", "\"x-absent\" is not in the request"),
            ("\"@query-param\";name=\"a\"", "\"@query-param\";name=\"a\" occurs several times in the request's query"),
            ("\"@query-param\";name=\"z\"", "\"@query-param\";name=\"z\" is not in the request's query"),
            ("\"x-plain\";key=\"b\"", "\"x-plain\";key=\"b\" has no member of that key"),
            ("\"x-text\";key=\"b\"", "\"x-text\";key=\"b\" is not a dictionary"),
            ("\"priority\";sf", "\"priority\";sf is not a valid structured field"),
            ("x-bytes", "\"x-bytes\" has a value that is not ASCII"),
            ("content-type", "\"content-type\" is not in the request"),
        ])
    func missing(component: String, reason: String) throws {
        let plan = try MessageBench.settings([component]).plan
        let request = MessageBench.request(
            "POST", "/?a=1&a=2", body: .unread,
            fields: ["Host": "h", "X-Plain": "a=1", "X-Text": "A B", "Priority": "u=", "X-Bytes": "\u{E9}"])
        let signer = try MessageBench.signer(plan)
        let failure = #expect(throws: LoginFailure.self) { try signer.sign(request) }
        #expect(failure?.code == .unsignable && failure?.detail.contains(reason) == true, "\(failure?.detail ?? "")")
    }

    @Test(
        "a component that no request can have is refused where it is configured",
        arguments: [
            ("@status", "belongs to responses"), ("@signature-params", "is not a derived component"),
            ("@query-param", "needs the parameter `name`"), ("Content-Type", "must be in lower case"),
            ("a b", "is not the name of a field"), ("\"a b\"", "is not the name of a field"),
            ("", "is not the name of a field"),
            ("\"a\";req", "has `req`"), ("\"a\";tr", "has `tr`"), ("\"a\";x", "has a parameter `x`"),
            ("\"a\";sf", "is not known to be a structured field"), ("\"a\";bs;key=\"x\"", "exclude each other"),
            ("\"a\";key=x", "has a parameter `key`"), ("\"@path\";key=\"x\"", "has a parameter `key`"),
            ("\"a\";bs=?0", "has a parameter `bs`"), ("(\"a\")", "is neither"),
        ])
    func refused(text: String, reason: String) {
        let fault = #expect(throws: SignedComponent.Fault.self) { try SignedComponent(text) }
        #expect(fault?.reason.contains(reason) == true, "\(fault?.reason ?? "")")
    }

    @Test("components are equal whatever the order of their parameters")
    func identity() throws {
        let one = try SignedComponent("\"priority\";sf;key=\"a\"")
        let other = try SignedComponent("\"priority\";key=\"a\";sf")
        #expect(one == other)
        #expect(try one != SignedComponent("\"priority\";key=\"a\""))
    }
}
