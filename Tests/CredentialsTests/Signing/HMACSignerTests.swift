// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling
@testable import Credentials

@Suite("Signatures of a text that a template describes")
struct HMACSignerTests {
    private static let now: Int64 = 1_369_353_600_250

    private func settings(
        _ text: String, _ fields: KeyValuePairs<String, String> = ["X-Signature": "{signature}"],
        _ change: (inout HMACSignature) -> Void = { _ in }
    ) throws -> HMACSignature {
        let fields = try fields.map {
            InjectedTemplate(name: try #require(HTTPField.Name($0.key)), value: try TextTemplate($0.value))
        }
        var settings = HMACSignature(
            hash: .sha256, text: try TextTemplate(text), fields: fields, encoding: .hex, secret: "secret",
            secretForm: .text)
        change(&settings)
        return settings
    }

    private func signer(
        _ settings: HMACSignature, secret: String = "secret-value", nonce: String? = nil
    ) throws -> HMACSigner {
        let credential = Credential(
            name: "partner", fields: ["secret": Secret(secret), "key": Secret("key-1"), "id": Secret("id-1")])
        return try HMACSigner(
            settings, credential, challenge: "partner", digests: CryptoDigests(),
            makeNonce: { nonce ?? HMACSigner.randomNonce() })
    }

    @Test("method, path, time and digest are signed, and the same time goes along")
    func digest() throws {
        let signer = try signer(
            settings(
                "{method}\n{path}\n{timestamp}\n{body-sha256}",
                ["X-Signature": "{signature}", "X-Timestamp": "{timestamp}", "X-Key": "{key}"]))
        let signed = try signer.sign(
            .sent("POST", "/a/b%20c?x=1", body: #"{"n":1}"#, at: Self.now, to: signer))
        #expect(signed.value("X-Signature") == "ed1293782300f792da57a5b226d1482b6d70ae28ed5d53ae15f2a850acef8d37")
        #expect(signed.value("X-Timestamp") == "1369353600")
        #expect(signed.value("X-Key") == "key-1")
    }

    @Test("the body itself is signed with a secret in base64")
    func content() throws {
        let signer = try signer(
            settings("{timestamp}{method}{target}{body}") {
                $0.encoding = .base64
                $0.secretForm = .base64
            }, secret: "c2VjcmV0LXZhbHVl")
        let signed = try signer.sign(
            .sent("POST", "/a/b%20c?x=1", body: #"{"n":1}"#, at: Self.now, to: signer))
        #expect(signed.value("X-Signature") == "rJNhFc+duJ7sTCIPT/60iuD/K6ycuz/ceJGcori/0n0=")
    }

    @Test("every value of a request is what its name says")
    func values() throws {
        let signer = try signer(
            settings(
                "x",
                [
                    "A":
                        "{signature}|{authority}|{query}|{target}|{timestamp-ms}|{date}|{iso-time}|{iso-time-ms}|{nonce}",
                    "B": "{body}|{body-sha1}|{body-md5-base64}|{header:content-type}|{header:x-none}|{base64:id:key}",
                ]), nonce: "n-1")
        let signed = try signer.sign(
            .sent("PUT", "/p?q", ["Content-Type": "text/plain"], body: "abc", at: Self.now, to: signer))
        #expect(
            signed.value("A")?.split(separator: "|").dropFirst().joined(separator: "|")
                == "example.amazonaws.com|q|/p?q|1369353600250|Fri, 24 May 2013 00:00:00 GMT|2013-05-24T00:00:00Z|"
                + "2013-05-24T00:00:00.250Z|n-1")
        #expect(
            signed.value("B")
                == "abc|a9993e364706816aba3e25717850c26c9cd0d89d|kAFQmDzST7DWlj99KOF/cg==|text/plain||aWQtMTprZXktMQ==")
    }

    @Test("a request without a body has an empty one, and one whose body is not kept is refused")
    func bodies() throws {
        let signer = try signer(settings("{body-sha512}", ["A": "{signature} {body-sha256} {body}"]))
        #expect(
            try signer.sign(.sent(at: Self.now, to: signer)).value("A")?
                .hasSuffix(" e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 ") == true)
        var request = SigningRequest.sent("POST", at: Self.now, to: signer)
        request.body = .unread
        let failure = #expect(throws: LoginFailure.self) { try signer.sign(request) }
        #expect(failure?.code == .bodyTooLong)
        let long = String(repeating: "x", count: BodyContent.limit + 1)
        #expect(throws: LoginFailure.self) {
            try signer.sign(.sent("POST", body: long, at: Self.now, to: signer))
        }
    }

    @Test("a text without the body reads none")
    func withoutBody() throws {
        let signer = try signer(settings("{method}"))
        #expect(signer.bodyReader(for: "/") == nil)
        var request = SigningRequest.sent("POST", at: Self.now, to: signer)
        request.body = .unread
        #expect(try signer.sign(request).value("X-Signature") != nil)
    }

    @Test("a field is signed as it is sent, several of a name joined, and none of another proxy's")
    func ownFields() throws {
        let signer = try signer(settings("{header:x-a}"))
        let one = try signer.sign(.sent("GET", "/", ["X-A": "1", "x-a": "2"], at: Self.now, to: signer))
        let two = try signer.sign(.sent("GET", "/", ["X-A": "1, 2"], at: Self.now, to: signer))
        #expect(one.value("X-Signature") == two.value("X-Signature"))
        var request = SigningRequest.sent(at: Self.now, to: signer)
        request.fields = nil
        let failure = #expect(throws: LoginFailure.self) { try signer.sign(request) }
        #expect(failure?.code == .unsignable)
    }

    @Test("each request has a nonce of its own, a random UUID")
    func nonces() throws {
        let signer = try signer(settings("{nonce}", ["A": "{signature}", "B": "{nonce}"]))
        let nonces = try (0..<100).map { _ in
            try #require(try signer.sign(.sent(at: Self.now, to: signer)).value("B"))
        }
        #expect(Set(nonces).count == 100)
        #expect(
            nonces.allSatisfy {
                $0.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil
            })
    }

    @Test("a secret in another encoding than configured is reported, and never printed")
    func secretForm() throws {
        let settings = try settings("{method}") { $0.secretForm = .hex }
        let failure = #expect(throws: LoginFailure.self) { try signer(settings, secret: "not hexadecimal") }
        #expect(failure?.code == .noCredential && failure?.detail.contains("hexadecimal") == false)
    }

    @Test("a signature reports a missing field by its name")
    func missing() throws {
        let settings = try settings("{method}{other}")
        let failure = #expect(throws: LoginFailure.self) { try signer(settings) }
        #expect(failure?.code == .noCredential && failure?.detail.contains("\"other\"") == true)
    }
}
