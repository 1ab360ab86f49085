// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPWire
import Testing

@testable import ChallengeClient

@Suite("Upstream plans")
struct UpstreamPlanTests {
    @Test(
        "the caller's path and query follow the upstream's path byte for byte",
        arguments: [
            ("/", "/", "/"), ("/", "/a", "/a"), ("/api", "/a", "/api/a"), ("/api/", "/a", "/api/a"),
            ("/api/", "/", "/api/"), ("/api/", "//a", "/api//a"), ("/", "//a//", "//a//"),
            ("/api/", "/a/../../b", "/api/a/../../b"), ("/", "/./x/..", "/./x/.."),
            ("/api/", "/%2F%2f%41?x=%20&y=a/b?c", "/api/%2F%2f%41?x=%20&y=a/b?c"), ("/", "/a?", "/a?"),
            ("/a%2Fb/", "/c", "/a%2Fb/c"), ("/api/", "", "/api/"), ("/", "", "/"), ("/", "?q", "/?q"),
            ("/api", "?q", "/api/?q"), ("/api/", "*", "*"), ("/", "*", "*"), ("/api/", "/*", "/api/*"),
        ])
    func targets(base: String, path: String, target: String) {
        let plan = UpstreamPlan(
            name: "bank", base: WebURL(origin: Origin(scheme: .https, host: "bank.example"), path: base))
        var bytes = ByteQueue()
        plan.writeTarget(Array(path.utf8).span, into: &bytes)
        #expect(bytes.text == target)
    }

    @Test("conversations may always speak to the upstream itself, and to no other origin that is not named")
    func origins() throws {
        let base = try #require(WebURL("https://bank.example/api/"))
        let id = Origin(scheme: .https, host: "id.example")
        #expect(UpstreamPlan(name: "bank", base: base).loginOrigins == [base.origin])
        #expect(UpstreamPlan(name: "bank", base: base, loginOrigins: [id]).loginOrigins == [base.origin, id])
    }
}

extension ByteQueue {
    /// The content as text.
    var text: String { withSpan { $0.text(ByteRange(start: 0, end: $0.count)) } }

    /// Creates a queue with that text.
    init(text: String) {
        self.init()
        append(text.utf8)
    }
}
