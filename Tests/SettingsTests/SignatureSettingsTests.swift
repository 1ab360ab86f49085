// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import SettingsReading
import Testing

@testable import Settings

@Suite("Signatures in the configuration")
struct SignatureSettingsTests {
    private func signature(_ keys: String) throws -> any SignatureKind {
        let yaml = challenge("name: c, upstream: u, credential: x, sign: { \(keys) }")
        #expect(problems(yaml) == [])
        let settings = try #require(parsed(yaml)?.challenges.first?.kind as? SignSettings)
        return settings.signature
    }

    private func found(_ keys: String, credential: String = "credential: x, ") -> [String] {
        problems(challenge("name: c, upstream: u, \(credential)sign: { \(keys) }"))
    }

    @Test("service and region are enough for AWS")
    func aws() throws {
        let settings = try #require(try signature("aws: { region: eu-west-1, service: s3 }") as? AWSSignature)
        #expect(settings.service == AWSService("s3", region: "eu-west-1") && settings.payload == .auto)
        #expect(settings.neededFields == ["access-key-id", "secret-access-key"])
    }

    @Test("a role needs the token of the issuer, and sends it to its own address")
    func role() throws {
        let settings = try #require(
            try signature(
                "aws: { region: r, service: sqs, assume-role: { url: \"https://sts.example/\", role: arn } }")
                as? AWSSignature)
        #expect(settings.neededFields == ["token"] && settings.role?.session == "countersign")
        #expect(settings.loginAddresses.map(\.key) == ["sign.aws.assume-role.url"])
    }

    @Test("an own scheme needs a text and a field for the signature")
    func hmac() throws {
        let settings = try #require(
            try signature(
                "hmac: sha256, over: \"{method}{key}{body}\", field: X-S, fields: { X-T: \"{timestamp} {id}\" }")
                as? HMACSignature)
        #expect(settings.neededFields == ["id", "key", "secret"])
        #expect(settings.fields.map(\.name.rawName) == ["X-T", "X-S"])
    }

    @Test(
        "settings that cannot be signed are reported",
        arguments: [
            ("aws: { region: r }", "sign.aws.service: is missing"),
            ("aws: { region: r/s, service: s3 }", "is not a name of letters, digits and hyphens"),
            ("aws: { region: r, service: sqs, payload: unsigned }", "belongs to the service s3"),
            ("aws: { region: r, service: s3, registry: \"https://e.example/\" }", "belongs to the services ecr"),
            ("aws: { region: r, service: s, assume-role: { role: a } }", "sign.aws.assume-role.url: is missing"),
            ("hmac: sha256, over: x", "has no field for the signature"),
            ("hmac: sha3, over: x, field: F", "sha3"),
            ("hmac: sha256, over: \"{signature}\", field: F", "which is made of this text"),
            ("hmac: sha256, over: \"{cookie:a}\", field: F", "of a request only {header:NAME} is known here"),
            ("hmac: sha256, over: \"{totp}\", field: F", "{totp}"),
            ("hmac: sha256, over: x, field: F, fields: { f: a }", "is also in"),
            ("hmac: sha256, over: x, field: Host", "belongs to the connection"),
            ("hmac: sha256, over: x, field: F, aws: { region: r, service: s }", "has several kinds of signatures"),
            ("aws: { region: r, service: s }, over: x", "belongs to `hmac`, not to `aws`"),
            ("over: x", "has no kind of signature"),
        ])
    func problem(keys: String, expected: String) {
        #expect(found(keys).contains { $0.contains(expected) }, "\(found(keys))")
    }

    @Test("a signature without a credential is refused")
    func withoutCredential() {
        #expect(
            found("aws: { region: r, service: s }", credential: "").contains { $0.contains("credential: is missing") })
    }
}

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
