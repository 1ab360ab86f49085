// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling

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

    @Test("a missing credential is told")
    func missing() async throws {
        let rig = LoginRig([], credentials: [])
        let failure = await rig.lose(try login("s=()"))
        #expect(failure.code == .noCredential)
    }
}
