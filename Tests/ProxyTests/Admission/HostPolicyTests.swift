// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Proxy
import Testing

@Suite("Which host names are served")
struct HostPolicyTests {
    private let policy = HostPolicy(names: ["Bank.Example", "192.0.2.7", "fe80::1", "[2001:db8::1]", "dotted.example."])

    private func accepts(_ authority: String) -> Bool {
        let bytes = Array(authority.utf8)
        return policy.accepts(ByteRange(start: 0, end: bytes.count), in: bytes.span)
    }

    @Test(
        "loopback and configured host names are served in any case, on any port, with a trailing dot",
        arguments: [
            "localhost", "LOCALHOST", "localhost.", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080",
            "bank.localhost", "a.b.localhost:80", "bank.example", "BANK.EXAMPLE:443", "bank.example.", "192.0.2.7:80",
            "[fe80::1]", "[2001:DB8::1]:8080", "dotted.example", "localhost:", "127.1.2.3", "127.255.255.255:80",
            "[0:0:0:0:0:0:0:1]", "[::0001]:80", "[2001:db8:0:0::1]", "127.0.0.1.",
        ])
    func served(authority: String) {
        #expect(accepts(authority))
    }

    @Test(
        "names that a browser can be made to resolve to a loopback address are not served",
        arguments: [
            "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost", "notlocalhost:8080",
            "bank.example.evil.example", "xbank.example", "127.0.0.1.nip.io", "localhost..", "bank.example..",
            "2130706433",
            "0x7f000001", "127.1", "127.0.1", "127.0.0.256", "127.0.0.01", "128.0.0.1", "127.0.0.1.1", "0127.0.0.1",
            "0.0.0.0", "[::]", "[::2]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "", "user@localhost", "localhost:99999",
            "localhost:8080:1", "[::1", "local host", "localhost%2e", "[localhost]",
        ])
    func refused(authority: String) {
        #expect(!accepts(authority))
    }
}
