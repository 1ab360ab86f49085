// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import Settings

@Suite("Settings of message signatures")
struct MessageSignatureSettingsTests {
    private func yaml(_ sign: String) -> String {
        challenge("name: c, upstream: u, credential: x, sign: { \(sign) }")
    }

    private func signature(_ sign: String) throws -> MessageSignature {
        let settings = try #require(parsed(yaml(sign)), "\(SettingsTests.problems(yaml(sign)))")
        let kind = try #require(settings.challenges.first?.kind as? SignSettings)
        return try #require(kind.signature as? MessageSignature)
    }

    @Test("all keys of a message signature are read")
    func whole() throws {
        let settings = try signature(
            """
            message: ["@method", "@authority", '"@query-param";name="a"', 'cache-control;sf'], algorithm: ecdsa-p256, tag: web-bot-auth, \
            label: s1, key-id: k, expires: 5m, nonce: true, agent: "https://robot.example/", when: challenged
            """)
        #expect(
            settings.plan.components.map(\.name)
                == ["@method", "@authority", "@query-param", "cache-control", "signature-agent"])
        #expect(settings.algorithm == .ecdsaP256 && settings.plan.tag == "web-bot-auth" && settings.plan.label == "s1")
        #expect(settings.keyID == "k" && settings.plan.lifetime == 300 && settings.plan.nonce == .random)
        #expect(settings.agent == "https://robot.example/" && settings.time == .challenged)
        #expect(settings.neededFields == ["private-key"])
    }

    @Test("a message signature has defaults")
    func defaults() throws {
        let settings = try signature("message: \"@authority\", algorithm: hmac")
        #expect(settings.plan == MessagePlan([try SignedComponent("@authority")], label: "sig1"))
        #expect(settings.time == .always && settings.keyID == nil && settings.agent == nil)
        #expect(settings.neededFields == ["secret"])
    }

    @Test("an agent that is listed among the components is not added again")
    func agent() throws {
        let settings = try signature(
            #"message: [signature-agent, "@authority"], algorithm: ed25519, agent: "https://a.example""#)
        #expect(settings.plan.components.map(\.name) == ["signature-agent", "@authority"])
    }

    @Test(
        "each problem of a message signature is reported with its position",
        arguments: [
            ("message: []", ".message: is empty: name at least one component, such as @method"),
            ("message: [\"@authority\", \"@status\"]", ".message[1]: belongs to responses"),
            ("message: [\"@authority\", \"@authority\"]", ".message[1]: names a component twice"),
            ("message: [\"@authority\", 'a;key=\"x\";sf', 'a;sf;key=\"x\"']", ".message[2]: names a component twice"),
            (
                "message: [\"@authority\", content-length]",
                ".message[1]: is written after the signature is made; sign content-digest for the body"
            ),
            (
                "message: [\"@authority\", 'a;tr']",
                ".message[1]: has `tr`, but trailers are not known before the request is sent"
            ),
            ("message: [\"@authority\", 'a;req']", ".message[1]: has `req`, which is for responses"),
            ("message: \"@authority\", label: Sig", ".label: is not a label: a lower-case letter, then"),
            ("message: \"@authority\", tag: \"\u{E9}\"", ".tag: has a character that is not ASCII"),
            ("message: \"@authority\", agent: robot", ".agent: "),
            ("message: \"@authority\", expires: 1ms", ".expires: must be at least 1s"),
            ("message: \"@authority\", secret: s", ".secret: belongs to `hmac`, not to `message`"),
            (
                "message: host, hmac: sha256",
                ": has several kinds of signatures: `hmac`, `message`; write one challenge for each"
            ),
        ])
    func problems(keys: String, problem: String) throws {
        let found = SettingsTests.errors(yaml("\(keys), algorithm: ed25519"))
        let first = try #require(found.first, "\(keys)")
        #expect(found.count == 1 && first.hasPrefix("f:5:"), "\(found)")
        #expect(first.contains(" challenges[0].sign\(problem)"), "\(first)")
    }

    @Test("a signature without an algorithm is refused, and one that is good for every server is warned of")
    func binding() {
        #expect(errors(yaml("message: host")).contains { $0.contains("sign.algorithm: is missing") })
        let warned = SettingsTests.problems(yaml("message: \"@method\", algorithm: ed25519"))
        #expect(
            warned.count == 1 && warned[0].contains("warning")
                && warned[0].contains("neither @authority nor @target-uri"))
    }

    @Test("two message signatures at one upstream need labels of their own")
    func conflicts() throws {
        let one = try signature("message: \"@authority\", algorithm: ed25519")
        var other = one
        #expect(one.conflicts(with: other))
        other.plan.label = "sig2"
        #expect(!one.conflicts(with: other))
    }
}
