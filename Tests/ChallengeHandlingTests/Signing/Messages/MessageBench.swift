// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling

/// Fields of a request as sent.
final class SentFields: SigningFields {
    private let fields: [(name: [UInt8], value: [UInt8])]

    init(_ fields: KeyValuePairs<String, String>) {
        self.fields = fields.map { (Array($0.key.utf8), Array($0.value.utf8)) }
    }

    func forEach(_ body: (Span<UInt8>, Span<UInt8>) -> Void) {
        for field in fields { body(field.name.span, field.value.span) }
    }
}

/// Keys whose signature is the text that they sign.
struct EchoKeys: MessageKeys {
    private struct Key: MessageKey {
        let publicMembers = ["kty": "OKP", "crv": "Ed25519", "x": "eA"]
        func signature(for message: [UInt8]) throws(StateError) -> [UInt8] { message }
    }

    func load(pem: Secret, for algorithm: MessageKeyAlgorithm) throws(StateError) -> any MessageKey {
        guard pem.revealText() == "key-in-pem" else { throw StateError(reason: "it is not a key") }
        return Key()
    }
}

/// Digests of one byte.
struct OneByteDigests: MessageDigests {
    func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> [UInt8] { [bytes.isEmpty ? 0 : 7] }
    func running(_ algorithm: DigestAlgorithm) -> any RunningDigest { Running(algorithm) }
    func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: [UInt8]) -> [UInt8] { [8] }

    private final class Running: RunningDigest {
        let algorithm: DigestAlgorithm
        init(_ algorithm: DigestAlgorithm) { self.algorithm = algorithm }
        func update(_ bytes: ArraySlice<UInt8>) {}
        func finish() -> [UInt8] { [7] }
    }
}

/// Makers of signatures for tests.
enum MessageBench {
    static let origin = Origin(scheme: .https, host: "www.example.com")
    static let credential = Credential(
        name: "robot", fields: ["private-key": Secret("key-in-pem"), "secret": Secret("shared-key")])

    static func request(
        _ method: String = "GET", _ target: String = "/", body: SigningRequest.Body = .none,
        fields: KeyValuePairs<String, String> = ["Host": "www.example.com"]
    ) -> SigningRequest {
        SigningRequest(
            method: method, origin: origin, target: target, body: body, now: 1_618_884_473_999,
            fields: SentFields(fields))
    }

    static func settings(_ components: [String]) throws -> MessageSignature {
        var parsed: [SignedComponent] = []
        for text in components { parsed.append(try SignedComponent(text)) }
        return MessageSignature(parsed, .ed25519)
    }

    static func signer(
        _ plan: MessagePlan, agent: String? = nil, nonces: [String]? = nil
    ) throws -> MessageSigner {
        let settings = MessageSignature([], .ed25519)
        let key = try MessageSigningKey(
            of: settings, credential, challenge: "robot", digests: OneByteDigests(), keys: EchoKeys())
        let requests = RequestedSignatures()
        for nonce in nonces ?? [] { requests.record(.init(plan: plan, nonce: nonce), at: "/") }
        var makeNonce: @Sendable (String) -> String? = { _ in "random" }
        if nonces != nil { makeNonce = requests.takeNonce }
        return MessageSigner(
            plan, agent: agent, key: key, challenge: "robot", digests: OneByteDigests(), makeNonce: makeNonce)
    }

    /// Returns the fields of a signed request, and the text that was signed.
    static func signed(
        _ request: SigningRequest, by signer: MessageSigner
    ) throws -> (fields: [String: String], lines: [String]) {
        var fields: [String: String] = [:]
        for field in try signer.sign(request).fields { fields[field.name.canonicalName] = field.value.revealText() }
        let base = fields["signature"].flatMap { $0.split(separator: ":").last }.flatMap { Base64.decode($0) } ?? []
        return (fields, String(decoding: base, as: UTF8.self).split(separator: "\n").map(String.init))
    }

    /// Returns the line of one component in the signature base of a request.
    static func line(_ component: String, of request: SigningRequest) throws -> String? {
        let plan = try settings([component]).plan
        return try signed(request, by: signer(plan)).lines.first
    }
}
