// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Web addresses")
struct WebURLTests {
    @Test(
        "a printed address parses to an equal address",
        arguments: ["https://a.example./b?c", "http://[2001:DB8::1]:80/", "HTTP://A:8080", "https://a:443/%"])
    func printed(_ text: String) throws {
        let url = try #require(WebURL(text))
        #expect(WebURL(url.description) == url)
    }

    @Test("a colon without a port means the default port, behind a name as behind an address in brackets")
    func emptyPort() {
        #expect(WebURL("https://a:/b")?.description == "https://a/b")
        #expect(WebURL("https://[::1]:/b")?.description == "https://[::1]/b")
        #expect(WebURL("https://[::1]:x/b") == nil)
    }

    @Test("an address whose host has an empty label is refused", arguments: ["a..", "526..", ".9.", ".a", "a..b", "."])
    func emptyLabels(_ host: String) {
        #expect(WebURL("https://\(host)/") == nil)
    }

    @Test("an address with brackets but no colon in its host is refused", arguments: ["[8]", "[]", "[.]"])
    func brackets(_ host: String) {
        #expect(WebURL("https://\(host)/") == nil)
    }
}
