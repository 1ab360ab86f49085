// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Settings
import SettingsReading
import Testing

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
        "what cannot be signed is told",
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
