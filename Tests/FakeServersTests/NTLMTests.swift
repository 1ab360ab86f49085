// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import FakeServers

@Suite("NTLM")
struct NTLMTests {
    @Test(
        "MD4 of the standard's own examples",
        arguments: [
            ("", "31d6cfe0d16ae931b73c59d7e0c089c0"), ("a", "bde52cb31de33e46245e05fbdbd6fb24"),
            ("abc", "a448017aaf21d8525fc10ae87aa6729d"), ("message digest", "d9130a8164549fe818874806e1c7014b"),
            (String(repeating: "1234567890", count: 8), "e33b4ddc9c38f2199c3e7b164fcc0536"),
        ])
    func digests(text: String, digest: String) {
        #expect(hexadecimal(md4(Array(text.utf8))) == digest)
    }

    /// MS-NLMP §4.2.4: user User, domain Domain, password Password.
    @Test("the proof of the protocol's own example is taken, and that of another password is not")
    func proof() throws {
        let challenge: [UInt8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF]
        let proof = bytes("68cd0ab851e51c96aabc927bebef6a1c")
        let blob = bytes(
            """
            01010000000000000000000000000000aaaaaaaaaaaaaaaa0000000002000c0044006f006d00610069006e0001000c00\
            5300650072007600650072000000000000000000
            """)
        let answer = try #require(NTLMAnswer(parsing: authenticate(proof + blob, domain: "Domain", user: "User")))
        #expect(answer.user == "User")
        #expect(answer.domain == "Domain")
        #expect(answer.knows("Password", challenge: challenge))
        #expect(!answer.knows("password", challenge: challenge))
        #expect(!answer.knows("Password", challenge: [UInt8](repeating: 0, count: 8)))
    }

    @Test("a message cut anywhere is no trap")
    func cut() {
        let whole = authenticate([UInt8](repeating: 1, count: 40), domain: "D", user: "U")
        for length in 0..<whole.count { _ = NTLMAnswer(parsing: Array(whole.prefix(length))) }
        #expect(NTLMAnswer(parsing: whole) != nil)
        #expect(NTLMAnswer(parsing: NTLMMessage.challenge([1, 2, 3, 4, 5, 6, 7, 8])) == nil)
    }

    @Test("a connection is asked, and no other is let in by its answer")
    func connections() {
        let area = NTLMArea(recorder: Recorder())
        var request = FakeRequest("GET", "/ntlm/")
        request.connection = 1
        let first = area.respond(to: request) { _ in FakeResponse(204) }
        #expect(first.status == 401)
        request.fields = [("Authorization", "NTLM \(Base64.encode(Array("NTLMSSP\0".utf8) + [1, 0, 0, 0]))")]
        let second = area.respond(to: request) { _ in FakeResponse(204) }
        #expect(second.status == 401)
        #expect(second.fields.contains { $0.name == "WWW-Authenticate" && $0.value.hasPrefix("NTLM TlRMTVNTUAAC") })
        request.connection = 2
        request.fields = []
        #expect(area.respond(to: request) { _ in FakeResponse(204) }.status == 401)
    }

    /// Returns an AUTHENTICATE_MESSAGE (MS-NLMP §2.2.1.3) of these fields.
    private func authenticate(_ answer: [UInt8], domain: String, user: String) -> [UInt8] {
        let fields = [[], answer, NTLMMessage.utf16(domain), NTLMMessage.utf16(user), [], []]
        var head = Array("NTLMSSP\0".utf8) + [3, 0, 0, 0]
        var place = 64
        for field in fields {
            let length = [UInt8(field.count & 255), UInt8(field.count >> 8)]
            head += length + length + [UInt8(place), 0, 0, 0]
            place += field.count
        }
        return head + [1, 0, 0, 0] + fields.flatMap { $0 }
    }

    private func bytes(_ text: String) -> [UInt8] {
        let digits = text.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    private func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
