// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import TestSupport
import Testing

@testable import Credentials

@Suite("Digest answers compared with curl")
struct CurlDigestTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var number, method, target, user, password, sentUser, response: String
        var challenges: [String]
        var testDescription: String { "test\(number): \(method) \(target)" }

        init(_ row: [String]) {
            (number, method, target, user) = (row[0], row[1], row[2], row[3])
            (password, sentUser, response) = (row[4], row[6], row[7])
            challenges = row[5].split(separator: " | ").map(String.init)
        }
    }

    private static let cases = JudgeTable("curl-digest").rows.map(Case.init)
    /// Challenges that give one parameter twice, which RFC 9110 §11.2 forbids: curl takes the last.
    private static let ambiguous: Set = ["1437"]

    @Test(
        "a Digest answer equals curl's for the same challenge",
        arguments: cases.filter { !ambiguous.contains($0.number) })
    func same(expected: Case) throws {
        let offered = try AuthenticationChallenge.parse(expected.challenges)
        let challenge = try #require(DigestChallenge.strongest(of: offered))
        let fields = ["username": Secret(expected.user), "password": Secret(expected.password)]
        let signer = DigestSigner(
            challenge, at: WebURL(origin: Origin(scheme: .http, host: "127.0.0.1"), path: "/"),
            for: try NameAndPassword(Credential(name: "corp", fields: fields), challenge: "corp"), name: "corp",
            digests: CryptoDigests())
        let signed = try signer.sign(
            SigningRequest(method: expected.method, origin: DigestBench.url.origin, target: expected.target))
        let value = try #require(signed.fields.first?.value.revealText())
        let answer = try #require(try AuthenticationChallenge.parse([value]).first)
        #expect(answer["response"] == expected.response)
        #expect(value.contains("username=\"\(expected.sentUser)\""))
        #expect(answer["cnonce"] == nil && answer["nc"] == nil && answer["qop"] == nil)
    }

    @Test(
        "a Digest challenge with a repeated parameter is not answered",
        arguments: cases.filter { ambiguous.contains($0.number) })
    func refused(expected: Case) throws {
        let offered = (try? AuthenticationChallenge.parse(expected.challenges)) ?? []
        #expect(DigestChallenge.strongest(of: offered) == nil)
    }
}
