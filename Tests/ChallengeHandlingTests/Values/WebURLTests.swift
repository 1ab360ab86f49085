// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Addresses")
struct WebURLTests {
    @Test(
        "what an address prints is read as the same address",
        arguments: ["https://a.example./b?c", "http://[2001:DB8::1]:80/", "HTTP://A:8080", "https://a:443/%"])
    func printed(_ text: String) throws {
        let url = try #require(WebURL(text))
        #expect(WebURL(url.description) == url)
    }

    @Test("a host with an empty label is none", arguments: ["a..", "526..", ".9.", ".a", "a..b", "."])
    func emptyLabels(_ host: String) {
        #expect(WebURL("https://\(host)/") == nil)
    }

    @Test("what holds no colon is no IPv6 address, lest it be read as another host", arguments: ["[8]", "[]", "[.]"])
    func brackets(_ host: String) {
        #expect(WebURL("https://\(host)/") == nil)
    }
}
