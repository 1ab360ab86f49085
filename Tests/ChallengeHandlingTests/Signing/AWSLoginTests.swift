// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Keys and tokens of AWS")
struct AWSLoginTests {
    private static let service = "https://sts.example.com/"
    private static let registry = "https://ecr.example.com/"
    private static let upstream = Origin(scheme: .https, host: "sqs.example.com")
    private static let key = SessionKey(origin: upstream, challenge: "queue", credential: "cluster")
    private static let credential = Credential(
        name: "cluster",
        fields: ["access-key-id": Secret("AKID"), "secret-access-key": Secret("sek-ret"), "token": Secret("web-token")])
    private static let answer = """
        <AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
        <Credentials><SessionToken>tok&amp;en</SessionToken><SecretAccessKey>temporary</SecretAccessKey>
        <Expiration>2026-11-21T17:00:00Z</Expiration><AccessKeyId>ASIA1</AccessKeyId></Credentials>
        </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>
        """

    private func login(
        _ change: (inout AWSSignature) throws -> Void = { _ in }, clock: AWSClock = AWSClock(),
        challenge: ExaminedResponse? = nil
    ) rethrows -> AWSLogin {
        var settings = AWSSignature(AWSService("sqs", region: "eu-west-1"))
        try change(&settings)
        return AWSLogin(
            settings, Self.key, retryRejectedAfter: nil, digests: NoDigests(), clock: clock, challenge: challenge)
    }

    private func role(_ proof: AWSRole.Proof = .webIdentity) throws -> AWSRole {
        AWSRole(
            url: try #require(WebURL(Self.service)), name: "arn:aws:iam::1:role/r", proof: proof,
            session: "countersign",
            lifetime: .seconds(900))
    }

    private func rig(_ steps: [ScriptedStep], latches: LocalGate = LocalGate()) -> LoginRig {
        LoginRig(steps, credentials: [Self.credential], latches: latches)
    }

    @Test("a credential's own key is looked up again after ten seconds")
    func ownKey() async throws {
        let session = try await rig([]).logIn(login())
        #expect(session.expiresAt == LoginRig.now + 10_000)
        let signer = try #require(session.signer as? AWSSigner)
        #expect(signer.keys.id == Secret("AKID") && signer.keys.token == nil)
    }

    @Test("a role is assumed by a token of another issuer, unsigned, and its key serves until its end")
    func webIdentity() async throws {
        let rig = rig([
            ScriptedStep(.post, Self.service, .success(SideResponse(status: 200, body: Array(Self.answer.utf8)))) {
                $0.form("Action") == "AssumeRoleWithWebIdentity" && $0.form("WebIdentityToken") == "web-token"
                    && $0.form("RoleArn") == "arn:aws:iam::1:role/r" && $0.form("RoleSessionName") == "countersign"
                    && $0.form("DurationSeconds") == "900" && $0.form("Version") == "2011-06-15"
                    && $0.fields[.authorization] == nil
            }
        ])
        let session = try await rig.logIn(try login { $0.role = try role() })
        let signer = try #require(session.signer as? AWSSigner)
        #expect(
            signer.keys
                == AWSKeys(id: Secret("ASIA1"), secret: Secret("temporary"), token: Secret("tok&en")))
        #expect(session.expiresAt == LoginRig.now + 3_600_000)
        #expect(rig.steps == ["role: 200, a key for 3600 s"])
    }

    @Test("a token that the service rejects is not sent a second time")
    func rejected() async throws {
        let latches = LocalGate()
        let answer =
            "<ErrorResponse><Error><Code>ExpiredTokenException</Code><Message>no</Message></Error></ErrorResponse>"
        let step = ScriptedStep(.post, Self.service, .success(SideResponse(status: 400, body: Array(answer.utf8))))
        let failure = await rig([step], latches: latches).lose(try login { $0.role = try role() })
        #expect(failure.code == .rejected)
        let again = await rig([], latches: latches).lose(try login { $0.role = try role() })
        #expect(again.code == .latched)
    }

    @Test(
        "a refusal that is not about the token latches nothing",
        arguments: ["AccessDenied", "Throttling", "InvalidIdentityToken", "", "<x>"])
    func unknown(code: String) async throws {
        let latches = LocalGate()
        let answer = "<ErrorResponse><Error><Code>\(code)</Code></Error></ErrorResponse>"
        let step = ScriptedStep(.post, Self.service, .success(SideResponse(status: 403, body: Array(answer.utf8))))
        for _ in 0..<2 {
            let failure = await rig([step], latches: latches).lose(try login { $0.role = try role() })
            #expect(failure.code == .failed)
        }
    }

    @Test("a wrong clock is reported, and the request is signed once more by the server's time")
    func clock() async throws {
        let answer =
            "<Error><Code>SignatureDoesNotMatch</Code><Message>Signature expired: 1 is now earlier than 2</Message></Error>"
        let refused = SideResponse(
            status: 403, fields: [.date: "Sat, 21 Nov 2026 16:20:00 GMT"], body: Array(answer.utf8))
        let rig = rig([
            ScriptedStep(.post, Self.service, .success(refused)) { $0.fields.amzDate == "20261121T160000Z" },
            ScriptedStep(.post, Self.service, .success(SideResponse(status: 200, body: Array(Self.answer.utf8)))) {
                $0.fields.amzDate == "20261121T162000Z"
            },
        ])
        let clock = AWSClock()
        let session = try await rig.logIn(try login({ $0.role = try role(.accessKey) }, clock: clock))
        // The expiry is in the server's time, whose clock is 20 minutes fast.
        #expect(session.expiresAt == LoginRig.now + 2_400_000)
        #expect(rig.steps.first?.hasPrefix("clock: this machine's is 1200 s behind the server's") == true)
    }

    @Test(
        "a role's request is signed in the region of the service's name",
        arguments: [
            ("https://sts.amazonaws.com/", "us-east-1"), ("https://sts.eu-west-1.amazonaws.com/", "eu-west-1"),
            ("https://sts.cn-north-1.amazonaws.com.cn/", "cn-north-1"), ("https://sts.example.com/", "r"),
            ("http://127.0.0.1:1/", "r"),
        ])
    func region(url: String, expected: String) throws {
        #expect(AWSRoleLogin.region(of: try #require(WebURL(url)), or: "r") == expected)
    }

    @Test("a request that is refused for its time once more latches nothing")
    func clockTwice() async throws {
        let answer =
            "<Error><Code>SignatureDoesNotMatch</Code><Message>Signature expired: 1 is now earlier than 2</Message></Error>"
        let refused = ScriptedStep(
            .post, Self.service,
            .success(
                SideResponse(
                    status: 403, fields: [.date: "Sat, 21 Nov 2026 16:20:00 GMT"], body: Array(answer.utf8))))
        let latches = LocalGate()
        for _ in 0..<2 {
            let failure = await rig([refused, refused], latches: latches).lose(
                try login { $0.role = try role(.accessKey) })
            #expect(failure.code == .failed)
        }
    }

    @Test("a request that is refused for its time is signed by the server's clock from then on")
    func skewedRequest() async throws {
        let clock = AWSClock()
        let response = ExaminedResponse(
            status: 403, fields: [.date: "Sat, 21 Nov 2026 15:40:00 GMT"],
            body: Array("<Error><Code>RequestTimeTooSkewed</Code></Error>".utf8),
            url: WebURL(origin: Self.upstream, path: "/"))
        #expect(AWSDetector().examine(response, hasSession: true) == .stale)
        #expect(AWSDetector().examine(response, hasSession: false) == .pass)
        let rig = rig([])
        _ = try await rig.logIn(login(clock: clock, challenge: response))
        #expect(clock.serverTime(at: LoginRig.now) == LoginRig.now - 1_200_000)
        #expect(
            rig.steps == [
                "clock: this machine's is 1200 s ahead of the server's, whose time is signed from now on; set the clock"
            ])
    }

    @Test("a time that is refused again although the clocks agree ends the login, and says that the key is fine")
    func sameClock() async throws {
        let clock = AWSClock()
        let response = ExaminedResponse(
            status: 403, fields: [.date: "Sat, 21 Nov 2026 15:40:00 GMT"],
            body: Array("<Error><Code>RequestTimeTooSkewed</Code></Error>".utf8),
            url: WebURL(origin: Self.upstream, path: "/"))
        _ = try await rig([]).logIn(login(clock: clock, challenge: response))
        let failure = await rig([]).lose(try login(clock: clock, challenge: response))
        #expect(failure.code == .failed && failure.detail.contains("the key was not rejected"))
        let undated = ExaminedResponse(
            status: 403, body: response.body, url: WebURL(origin: Self.upstream, path: "/"))
        let unknown = await rig([]).lose(try login(challenge: undated))
        #expect(unknown.code == .failed)
    }

    @Test("a key that the server calls expired is looked up once, and again after a minute at the earliest")
    func expiredKey() async throws {
        let clock = AWSClock()
        let response = ExaminedResponse(
            status: 400, body: Array("<Error><Code>ExpiredToken</Code></Error>".utf8),
            url: WebURL(origin: Self.upstream, path: "/"))
        _ = try await rig([]).logIn(login(clock: clock, challenge: response))
        let failure = await rig([]).lose(try login(clock: clock, challenge: response))
        #expect(failure.code == .failed && failure.retryAt == LoginRig.now + 60_000)
    }

    @Test(
        "only a time or a temporary key that is over asks for another signature",
        arguments: [
            (
                #"{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired: x"}"#,
                true
            ),
            (
                #"{"__type":"ExpiredTokenException","message":"The security token included in the request is expired"}"#,
                true
            ),
            ("<Response><Errors><Error><Code>RequestExpired</Code></Error></Errors></Response>", true),
            ("<Error><Code>ExpiredToken</Code></Error>", true),
            ("<Error><Code>SignatureDoesNotMatch</Code><Message>The signature does not match</Message></Error>", false),
            ("<Error><Code>InvalidAccessKeyId</Code></Error>", false),
            (#"{"__type":"AccessDeniedException"}"#, false), ("<Code>Expired", false), ("", false), ("{", false),
        ])
    func faults(body: String, isStale: Bool) {
        let url = WebURL(origin: Self.upstream, path: "/")
        for status in [400, 403] {
            let response = ExaminedResponse(status: status, body: Array(body.utf8), url: url)
            #expect(AWSDetector().examine(response, hasSession: true) == (isStale ? .stale : .pass))
        }
        let success = ExaminedResponse(status: 200, body: Array(body.utf8), url: url)
        #expect(AWSDetector().examine(success, hasSession: true) == .pass)
    }

    @Test("a registry's token is obtained by a signed request")
    func registryToken() async throws {
        let answer = #"{"authorizationData":[{"authorizationToken":"QVdTOnBhc3M=","expiresAt":1795280400.5}]}"#
        let rig = rig([
            ScriptedStep(.post, Self.registry, .success(SideResponse(status: 200, body: Array(answer.utf8)))) {
                $0.body == Secret("{}") && $0.fields[.authorization]?.hasPrefix("AWS4-HMAC-SHA256 ") == true
                    && $0.fields[.contentType] == "application/x-amz-json-1.1"
            }
        ])
        let session = try await rig.logIn(
            login {
                $0.service.name = "ecr"
                $0.registry = WebURL(Self.registry)
            })
        #expect(session.fields == [InjectedField(name: .authorization, value: Secret("Basic QVdTOnBhc3M="))])
        #expect(session.expiresAt == LoginRig.now + 3_600_000)
    }

    @Test(
        "an answer without a token that a field can carry yields no session",
        arguments: [
            #"{"authorizationData":[]}"#, "[]", "", #"{"authorizationData":[{"authorizationToken":"a b"}]}"#,
            #"{"authorizationData":[{"authorizationToken":7}]}"#,
        ])
    func noToken(answer: String) async throws {
        let step = ScriptedStep(.post, Self.registry, .success(SideResponse(status: 200, body: Array(answer.utf8))))
        let failure = await rig([step]).lose(login { $0.registry = WebURL(Self.registry) })
        #expect(failure.code == .failed)
    }

    @Test(
        "a document's texts are found, and nothing that looks like them",
        arguments: [
            ("<A>x</A>", "x"), ("<A></A>", ""), ("<A>a&lt;b</A>", "a<b"), ("<A>a&#65;</A>", nil), ("<A><B/></A>", nil),
            ("<A>x</B>", nil), ("<A>x", nil), ("<A x='1'>x</A>", nil), ("<a>x</a>", nil),
        ])
    func documents(text: String, expected: String?) {
        #expect(AWSDocument.text(of: "A", in: Array(text.utf8)) == expected)
    }

    @Test(
        "a time is read with and without a fraction, and with nothing else",
        arguments: [
            ("2013-05-24T00:00:00Z", 1_369_353_600_000), ("2013-05-24T00:00:00.123Z", 1_369_353_600_000),
            ("2013-05-24T00:00:00", nil), ("2013-02-30T00:00:00Z", nil), ("2013-05-24T00:00:00.xZ", nil), ("", nil),
            ("2013-05-24 00:00:00Z", nil), ("+013-05-24T00:00:00Z", nil),
        ] as [(String, Int64?)])
    func times(text: String, expected: Int64?) {
        #expect(AWSTime.moment(text) == expected)
    }
}

extension HTTPFields {
    fileprivate var amzDate: String? { HTTPField.Name("X-Amz-Date").flatMap { self[$0] } }
}
