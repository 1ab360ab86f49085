// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling

@Suite("Message signatures")
struct MessageSignerTests {
    private static let body = SigningRequest.Body.read([BodyReading(.digest(.sha256), [7])])

    @Test("a message signature has its components and parameters in order")
    func whole() throws {
        var plan = try MessageBench.settings(["@method", "content-digest", "signature-agent", "host"]).plan
        plan.tag = "web-bot-auth"
        plan.lifetime = 300
        plan.nonce = .random
        let signer = try MessageBench.signer(plan, agent: "https://robot.example/\"")
        let signed = try MessageBench.signed(MessageBench.request("PUT", body: Self.body), by: signer)
        let thumbprint = Base64.encode([7], .url)
        let input = """
            ("@method" "content-digest" "signature-agent" "host");created=1618884473;expires=1618884773;\
            keyid="\(thumbprint)";nonce="random";tag="web-bot-auth"
            """
        #expect(
            signed.lines == [
                "\"@method\": PUT", "\"content-digest\": sha-256=:Bw==:",
                "\"signature-agent\": \"https://robot.example/\\\"\"", "\"host\": www.example.com",
                "\"@signature-params\": \(input)",
            ])
        #expect(signed.fields["signature-input"] == "sig1=\(input)")
        #expect(signed.fields["content-digest"] == "sha-256=:Bw==:" && signed.fields.count == 4)
        #expect(Set(signer.names.map(\.canonicalName)) == Set(signed.fields.keys))
        #expect(signer.bodyReader(for: "/")?.form == .digest(.sha256))
    }

    @Test("a message signature omits components of the body for a request without a body")
    func noBody() throws {
        let plan = try MessageBench.settings(["@method", "content-digest", "content-type"]).plan
        let signer = try MessageBench.signer(plan)
        let signed = try MessageBench.signed(MessageBench.request(), by: signer)
        #expect(signed.lines.count == 2 && signed.fields["content-digest"] == nil)
        let typed = MessageBench.request(fields: ["Host": "h", "Content-Type": "text/plain"])
        #expect(try MessageBench.signed(typed, by: signer).lines.contains("\"content-type\": text/plain"))
    }

    @Test("a body that was not read, but is covered, ends the request")
    func unread() throws {
        let signer = try MessageBench.signer(MessageBench.settings(["@method", "content-digest"]).plan)
        let failure = #expect(throws: LoginFailure.self) {
            try signer.sign(MessageBench.request("POST", body: .unread))
        }
        #expect(failure?.code == .bodyTooLong && failure?.detail.contains("replay") == true)
        let other = try MessageBench.signer(MessageBench.settings(["@method"]).plan)
        #expect(other.bodyReader(for: "/") == nil && !other.names.contains { $0.canonicalName == "content-digest" })
        #expect(try MessageBench.signed(MessageBench.request("POST", body: .unread), by: other).lines.count == 2)
    }

    @Test("two message signatures of one request share its digest")
    func two() throws {
        let plan = try MessageBench.settings(["content-digest"]).plan
        let request = MessageBench.request(
            "POST", body: Self.body, fields: ["Host": "h", "Content-Digest": "sha-256=:Bw==:"])
        let signed = try MessageBench.signed(request, by: MessageBench.signer(plan))
        #expect(signed.fields["content-digest"] == nil && signed.lines.first == "\"content-digest\": sha-256=:Bw==:")
    }

    @Test("a signature that another program sends names the fields that are not known")
    func unknownFields() throws {
        let plan = try MessageBench.settings(["@method", "x-tenant"]).plan
        let request = SigningRequest(method: "GET", origin: MessageBench.origin, target: "/")
        let signer = try MessageBench.signer(plan)
        let failure = #expect(throws: LoginFailure.self) { try signer.sign(request) }
        #expect(failure?.code == .unsignable && failure?.detail.contains("another program") == true)
    }

    @Test("a nonce of the server is in one signature, and a request without one is sent unsigned")
    func nonces() throws {
        var plan = try MessageBench.settings(["@method"]).plan
        plan.nonce = .received
        let signer = try MessageBench.signer(plan, nonces: ["old", "new"])
        for nonce in ["new", "old"] {
            let input = try MessageBench.signed(MessageBench.request(), by: signer).fields["signature-input"]
            #expect(input?.contains(";nonce=\"\(nonce)\"") == true && !signer.wearsOut)
        }
        #expect(try signer.sign(MessageBench.request()).fields.isEmpty && signer.wearsOut)
    }

    @Test("a shared secret makes an HMAC without a key identifier")
    func shared() throws {
        var settings = try MessageBench.settings(["@method"])
        settings.algorithm = .hmac
        let key = try MessageSigningKey(
            of: settings, MessageBench.credential, challenge: "robot", digests: OneByteDigests(), keys: EchoKeys())
        #expect(key.identifier == nil && settings.neededFields == ["secret"])
        #expect(try key.signature(for: [1]) == [8])
    }

    @Test("a private key that does not fit the algorithm is reported with the field and the algorithm")
    func wrongKey() throws {
        let credential = Credential(name: "robot", fields: ["private-key": .init("other")])
        let failure = #expect(throws: LoginFailure.self) {
            try MessageSigningKey(
                of: MessageSignature([], .rsaPSS), credential, challenge: "robot", digests: OneByteDigests(),
                keys: EchoKeys())
        }
        #expect(failure?.code == .noCredential && failure?.detail.contains("rsa-pss-sha512: it is not a key") == true)
    }
}

@Suite("Logins by Accept-Signature")
struct MessageLoginTests {
    private static let page = WebURL(origin: MessageBench.origin, path: "/page")
    private static let key = SessionKey(origin: MessageBench.origin, challenge: "robot", credential: "robot")

    private static func fields(_ value: String) -> HTTPFields {
        HTTPField.Name("Accept-Signature").map { [$0: value] } ?? [:]
    }

    private func login(
        _ asked: String?, target: WebURL? = nil, requests: RequestedSignatures = RequestedSignatures()
    ) throws -> MessageLogin {
        let settings = try MessageBench.settings(["@method", "@authority"])
        let challenge = asked.map { ExaminedResponse(status: 401, fields: Self.fields($0), url: Self.page) }
        return MessageLogin(
            settings: settings, key: Self.key, detector: MessageDetector(settings: settings, requests: requests),
            occasion: LoginOccasion(challenge: challenge, target: target), address: Self.page,
            digests: OneByteDigests(),
            keys: EchoKeys())
    }

    private func rig(_ steps: [ScriptedStep] = []) -> LoginRig {
        LoginRig(steps, credentials: [MessageBench.credential])
    }

    private func signed(_ session: Session) throws -> [String] {
        let signer = try #require(session.signer as? MessageSigner)
        return try MessageBench.signed(MessageBench.request(), by: signer).lines
    }

    @Test("a challenge is answered without any request, and the session signs as the server asked")
    func challenged() async throws {
        let session = try await rig().logIn(login("s=(\"@path\");created"))
        #expect(
            try signed(session).dropLast() == ["\"@path\": /", "\"@method\": GET", "\"@authority\": www.example.com"])
        #expect(session.expiresAt == LoginRig.now + MessageLogin.lifetime && session.isVerified)
    }

    @Test("a renewal signs as the server asked last")
    func renewed() async throws {
        let requests = RequestedSignatures()
        let plan = MessagePlan([SignedComponent(plain: "@query")], label: "s")
        requests.record(.init(plan: plan, nonce: nil), at: "/")
        let session = try await rig().logIn(login(nil, requests: requests))
        #expect(try signed(session).first == "\"@query\": ?")
    }

    @Test("a request with effects is preceded by one HEAD of its address, whose answer is the challenge")
    func probed() async throws {
        let requests = RequestedSignatures()
        let asks = SideResponse(status: 403, fields: Self.fields("s=();nonce=\"n\""))
        let rig = rig([ScriptedStep(.head, "\(Self.page)", .success(asks)) { $0.fields.isEmpty }])
        let session = try await rig.logIn(login(nil, target: Self.page, requests: requests))
        let signer = try #require(session.signer as? MessageSigner)
        let signed = try MessageBench.signed(MessageBench.request("POST", "/page?x"), by: signer)
        #expect(signed.lines.last?.contains(";nonce=\"n\"") == true)
    }

    @Test(
        "without Accept-Signature there is nothing to add",
        arguments: [
            SideResponse(status: 200, fields: fields("s=()")), SideResponse(status: 401),
            SideResponse(status: 429, fields: [.retryAfter: "1"]), SideResponse(status: 401, fields: fields("s=(")),
        ])
    func nothingAsked(response: SideResponse) async throws {
        let rig = rig([ScriptedStep(.head, "\(Self.page)", .success(response))])
        let session = try await rig.logIn(login(nil, target: Self.page))
        #expect(session.isEmpty && rig.credentials.count == 0)
    }

    @Test("a signature by another key is not made")
    func otherKey() async throws {
        let requests = RequestedSignatures()
        let session = try await rig().logIn(login("s=();keyid=\"other\"", requests: requests))
        #expect(session.isEmpty && requests.keyID == .known(Base64.encode([7], .url)))
    }

    @Test("a login by message signature reports a missing credential")
    func missing() async throws {
        let rig = LoginRig([], credentials: [])
        let failure = await rig.lose(try login("s=()"))
        #expect(failure.code == .noCredential)
    }
}
