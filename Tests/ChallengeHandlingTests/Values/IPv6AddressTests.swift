// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("IPv6 addresses")
struct IPv6AddressTests {
    @Test(
        "each spelling of an IPv6 address has one canonical text",
        arguments: [
            ("::", "::"), ("::1", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("0000::0001", "::1"), ("1::", "1::"),
            ("2001:DB8::A", "2001:db8::a"), ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("::ffff:127.0.0.1", "::ffff:7f00:1"), ("1:2:3:4:5:6:7.8.9.10", "1:2:3:4:5:6:708:90a"),
            ("1::3:4:5:6:7:8", "1:0:3:4:5:6:7:8"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ])
    func canonical(text: String, expected: String) throws {
        let address = try #require(IPv6Address(text[...]))
        #expect(address.description == expected)
        #expect(IPv6Address(expected[...]) == address)
    }

    @Test(
        "a text that is not an IPv6 address is refused",
        arguments: [
            "", ":", "1", ":::", "1:::2", "::1::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::",
            "::1:2:3:4:5:6:7:8",
            "::1.", "::.", "::1.2.3", "::1.2.3.4.5", "::1.2.3.256", "::1.2.3.04", "::1.2.3.4:5", "1.2.3.4", "::g",
            "::+1", "::-1",
            "12345::", ":1", "1:", "::1%eth0", "1:2:3:4:5:6:7:1.2.3.4", "::\u{FF11}",
        ])
    func refused(text: String) { #expect(IPv6Address(text[...]) == nil) }
}
