// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling
@testable import Credentials

@Suite("Signature Version 4")
struct AWSSignerTests {
    /// 2015-08-30T12:36:00Z, the time of AWS' own test suite.
    private static let suiteTime: Int64 = 1_440_938_160_000
    /// 2013-05-24T00:00:00Z, the time of the examples in the documentation of S3.
    private static let storeTime: Int64 = 1_369_353_600_000

    private func signer(
        _ service: String = "service", secret: String = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        id: String = "AKIDEXAMPLE", token: String? = nil, unsigned: Bool = false, clock: AWSClock = AWSClock()
    ) -> AWSSigner {
        AWSSigner(
            AWSKeys(id: Secret(id), secret: Secret(secret), token: token.map { Secret($0) }),
            AWSService(service, region: "us-east-1"), leavesBodiesUnsigned: unsigned, challenge: "store",
            digests: CryptoDigests(), clock: clock)
    }

    private var store: AWSSigner {
        signer("s3", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", id: "AKIAIOSFODNN7EXAMPLE")
    }

    @Test(
        "the signatures are those of AWS' test suite, and of botocore",
        arguments: [
            ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            (
                "GET", "/?Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
            ),
            ("GET", "/?%E1%88%B4=bar", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
            ("GET", "/example/..", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("GET", "//example//", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
            ("GET", "/example%20space/", "446b817944c553435b35e813c261ff4e161fff982d1bacdef1c87f6785dd1662"),
            ("GET", "/a%2Fb/(c)/%7e", "cf38301decdb4e30344f8c35fd8bb460c9cd16f6eb4b80818a51c4a9413fb8c5"),
        ])
    func suite(method: String, target: String, signature: String) throws {
        let signer = signer()
        let request = SigningRequest.sent(
            method, target, ["Host": "example.amazonaws.com", "User-Agent": "not signed"], at: Self.suiteTime,
            to: signer)
        let signed = try signer.sign(request)
        #expect(signed.signature == signature)
        #expect(signed.value("x-amz-date") == "20150830T123600Z")
        let field = try #require(signed.value("authorization"))
        #expect(
            field.hasPrefix(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                    + "SignedHeaders=host;x-amz-date, Signature="))
    }

    @Test("a body's digest and the media type are signed")
    func body() throws {
        let signer = signer()
        let request = SigningRequest.sent(
            "POST", "/",
            ["Host": "example.amazonaws.com", "Content-Type": "application/x-www-form-urlencoded"],
            body: "Param1=value1", at: Self.suiteTime, to: signer)
        #expect(
            try signer.sign(request).signature == "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a")
    }

    @Test("the token of a temporary key goes along, signed")
    func token() throws {
        let signer = signer(token: "TOKEN/+=")
        let request = SigningRequest.sent("GET", "/", ["Host": "example.amazonaws.com"], at: Self.suiteTime, to: signer)
        let signed = try signer.sign(request)
        #expect(signed.value("x-amz-security-token") == "TOKEN/+=")
        #expect(signed.signature == "52d72e91cb29e59eb39e2644d9377b74ec8b7d7bd70232a65c9b2798ab0d794b")
    }

    @Test(
        "a store's path is signed as it is sent, and its digest is a field",
        arguments: [
            ("/?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            ("/?max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
            ("/?prefix=J&max-keys=2", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        ])
    func storeExamples(target: String, signature: String) throws {
        let request = SigningRequest.sent(
            "GET", target, ["Host": "examplebucket.s3.amazonaws.com"], at: Self.storeTime, to: store)
        let signed = try store.sign(request)
        #expect(signed.signature == signature)
        #expect(
            signed.value("x-amz-content-sha256") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    }

    @Test("blanks in values are folded, and odd paths of a store are left alone")
    func odd() throws {
        let request = SigningRequest.sent(
            "PUT", "/a//b/../c%20d%2Fe",
            [
                "Host": "examplebucket.s3.amazonaws.com", "x-amz-meta-note": "  two   words ", "Via": "1.1 x",
                "Content-Type": "text/plain",
            ], body: "Welcome to Amazon S3.", at: Self.storeTime, to: store)
        #expect(
            try store.sign(request).signature == "cb4693367777656bd8b594315fd4f0c8bebad05685f28dba8d657ccb1a67b8c2")
    }

    @Test("spellings that a store reads alike have one signature")
    func spellings() throws {
        let signatures = try ["/a b".replacing(" ", with: "%20") + "?k=a+b", "/%61%20b?k=a%20b", "/a%20b?k=%61%20b"].map
        {
            try store.sign(.sent("GET", $0, ["Host": "b"], at: Self.storeTime, to: store)).signature
        }
        #expect(Set(signatures).count == 1)
    }

    @Test("a long body is unsigned where a store is reached by TLS, and refused anywhere else")
    func longBody() throws {
        var request = SigningRequest.sent("PUT", "/b/k", ["Host": "b"], at: Self.storeTime, to: store)
        request.body = .unread
        #expect(try store.sign(request).value("x-amz-content-sha256") == "UNSIGNED-PAYLOAD")
        request.origin = Origin(scheme: .http, host: "localhost")
        #expect(throws: LoginFailure.self) { try store.sign(request) }
        let unsigned = signer("s3", unsigned: true)
        #expect(unsigned.bodyReader(for: "/b/k") == nil)
        #expect(try unsigned.sign(request).value("x-amz-content-sha256") == "UNSIGNED-PAYLOAD")
        let failure = #expect(throws: LoginFailure.self) { try signer("sqs", unsigned: true).sign(request) }
        #expect(failure?.code == .bodyTooLong)
    }

    @Test("chunks that the caller has signed are refused, and its own digest is taken")
    func ownDigest() throws {
        func digest(_ text: String) throws -> String? {
            let request = SigningRequest.sent(
                "PUT", "/b/k", ["Host": "b", "X-Amz-Content-Sha256": text], body: "x", at: Self.storeTime, to: store)
            let signed = try store.sign(request)
            // The request has the field already.
            #expect(signed.value("x-amz-content-sha256") == nil)
            return signed.signature
        }
        let failure = #expect(throws: LoginFailure.self) { try digest("STREAMING-AWS4-HMAC-SHA256-PAYLOAD") }
        #expect(failure?.code == .unsignable)
        #expect(throws: LoginFailure.self) { try digest("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER") }
        #expect(throws: LoginFailure.self) { try digest("0") }
        #expect(try digest("STREAMING-UNSIGNED-PAYLOAD-TRAILER") != nil)
        #expect(try digest(String(repeating: "0", count: 64)) != digest("UNSIGNED-PAYLOAD"))
    }

    @Test("a target that the caller has signed itself is left alone")
    func presigned() throws {
        let target = "/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00"
        let request = SigningRequest.sent("GET", target, ["Host": "b"], at: Self.storeTime, to: store)
        #expect(try store.sign(request).fields.isEmpty)
    }

    @Test("a view signs anew each second, and with another key each day")
    func days() throws {
        let view = store.makeView()
        func date(_ now: Int64) throws -> String? {
            let request = SigningRequest.sent("GET", "/", ["Host": "b"], at: now, to: store)
            let signed = try SignedFields(request, by: view)
            #expect(signed.signature == (try store.sign(request)).signature)
            return signed.value("x-amz-date")
        }
        #expect(try date(Self.storeTime - 1) == "20130523T235959Z")
        #expect(try date(Self.storeTime) == "20130524T000000Z")
        #expect(try date(Self.storeTime - 86_400_000) == "20130523T000000Z")
        #expect(try date(.max) != nil)
        #expect(try date(.min) != nil)
    }

    @Test("the server's clock is signed once it is known")
    func clock() throws {
        let clock = AWSClock()
        let signer = signer("s3", clock: clock)
        let response = ExaminedResponse(
            status: 403, fields: [.date: "Fri, 24 May 2013 00:20:00 GMT"],
            url: WebURL(origin: Origin(scheme: .https, host: "b"), path: "/"))
        #expect(clock.learn(from: response, now: Self.storeTime) && clock.difference == 1_200_000)
        let request = SigningRequest.sent("GET", "/", ["Host": "b"], at: Self.storeTime, to: signer)
        #expect(try signer.sign(request).value("x-amz-date") == "20130524T002000Z")
        #expect(!clock.learn(from: response, now: Self.storeTime))
        #expect(clock.learn(from: response, now: Self.storeTime + 1_190_000))
        #expect(clock.serverTime(at: 5) == 5)
    }

    @Test(
        "a key with blanks or line ends is refused before it is used", arguments: ["AK ID", "AKID\n", "AK,ID", "AKÍD"])
    func badKeys(id: String) {
        let credential = Credential(
            name: "store", fields: ["access-key-id": Secret(id), "secret-access-key": Secret("s")])
        let failure = #expect(throws: LoginFailure.self) { try AWSKeys(credential, for: "store") }
        #expect(failure?.code == .noCredential)
    }
}
