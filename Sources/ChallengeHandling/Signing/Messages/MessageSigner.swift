// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets
internal import Synchronization

/// Signer of requests with HTTP message signatures (RFC 9421).
final class MessageSigner: RequestSigner {
    private let plan: MessagePlan
    private let agent: String?
    private let key: MessageSigningKey
    private let challenge: String
    private let digests: any MessageDigests
    private let makeNonce: @Sendable (_ path: String) -> String?
    /// True after a request found no nonce of the server.
    private let lacksNonce = Atomic(false)

    /// Creates a signer for `plan`. `agent` is the value of `Signature-Agent`. `makeNonce` returns the nonce of one
    /// request, nil without an unused one from the server.
    init(
        _ plan: MessagePlan, agent: String?, key: MessageSigningKey, challenge: String, digests: any MessageDigests,
        makeNonce: @escaping @Sendable (_ path: String) -> String? = MessageSigner.randomNonce
    ) {
        self.plan = plan
        self.agent = agent
        self.key = key
        self.challenge = challenge
        self.digests = digests
        self.makeNonce = makeNonce
    }

    private static let input = HTTPField.Name(literal: "Signature-Input")
    private static let signature = HTTPField.Name(literal: "Signature")
    private static let contentDigest = HTTPField.Name(literal: "Content-Digest")
    private static let signatureAgent = HTTPField.Name(literal: "Signature-Agent")

    /// Names of the fields: a caller's own signatures are dropped, and its own digest if the signature covers one.
    var names: [HTTPField.Name] {
        [
            Self.signature, Self.input, plan.coversBody ? Self.contentDigest : nil,
            agent == nil ? nil : Self.signatureAgent,
        ].compactMap(\.self)
    }

    /// Empty: responses change nothing.
    var learnsFrom: [HTTPField.Name]? { [] }

    /// Does nothing: responses do not change the signer.
    func learn(status: Int, fields: HTTPFields, target: String) {}

    /// True after the nonces of the server were used up.
    var wearsOut: Bool { lacksNonce.load(ordering: .relaxed) }

    /// Returns a running SHA-256 of the body, if the signature covers it.
    func bodyReader(for target: String) -> (any BodyReader)? { plan.coversBody ? digests.running(.sha256) : nil }

    /// Returns the signature of a request; no fields if a server has asked for a signature that this request cannot have.
    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        var values = MessageValues(request, for: plan.components)
        var added: [(name: HTTPField.Name, value: String)] = []
        // A digest that is there already is that of another signature of this request: the caller's own was dropped.
        if plan.coversBody, !values.hasField("content-digest"), let digest = try contentDigest(of: request.body) {
            values.add("content-digest", digest)
            added.append((Self.contentDigest, digest))
        }
        if let agent {
            let text = StructuredFieldWriter.text(of: .string(agent))
            values.add("signature-agent", text)
            added.append((Self.signatureAgent, text))
        }
        let components = plan.components.filter { !isLeftOut($0, request, values) }
        guard let signed = try signed(components, values, request) else { return SignedFields() }
        added.append((Self.input, "\(plan.label)=\(signed.input)"))
        added.append((Self.signature, "\(plan.label)=:\(Base64.encode(signed.signature)):"))
        return SignedFields(added.map { InjectedField(name: $0.name, value: Secret($0.value)) })
    }

    private func signed(
        _ components: [SignedComponent], _ values: MessageValues, _ request: SigningRequest
    ) throws(LoginFailure) -> (input: String, signature: [UInt8])? {
        var nonce: String?
        if plan.nonce != .none {
            guard let made = makeNonce(String(request.target.prefix { $0 != "?" })) else {
                lacksNonce.store(true, ordering: .relaxed)
                return nil
            }
            nonce = made
        }
        let parameters = plan.parameters(
            created: request.now.flooredDivision(by: 1000).quotient, keyID: key.identifier, algorithm: key.algorithm,
            nonce: nonce)
        let base: MessageBase
        do throws(MissingComponent) {
            base = try MessageBase(components, parameters, values)
        } catch {
            if plan.requested != nil { return nil }
            throw unsignable(error, request)
        }
        var bytes = base.bytes
        // The values may be secret.
        defer { _ = Secret(taking: &bytes) }
        do throws(StateError) {
            return (base.input, try key.signature(for: bytes))
        } catch {
            throw LoginFailure(
                .failed, challenge: challenge, detail: "The request could not be signed: \(error.reason).")
        }
    }

    /// Returns whether the signature omits a component of the body, because the request has no body.
    private func isLeftOut(_ component: SignedComponent, _ request: SigningRequest, _ values: MessageValues) -> Bool {
        guard case .none = request.body else { return false }
        return plan.isOptional(component) && !values.hasField(component.name)
    }

    /// Returns the value of `Content-Digest` (RFC 9530 §2); nil for a request without a body whose digest no server has asked for.
    private func contentDigest(of body: SigningRequest.Body) throws(LoginFailure) -> String? {
        var digest = body.bytes(.digest(.sha256))
        if case .none = body {
            guard plan.requested?.contains(where: { $0.name == "content-digest" }) == true else { return nil }
            digest = digests.digest(.sha256, of: [UInt8]())
        }
        guard let digest else { throw bodyTooLong }
        return "sha-256=\(StructuredFieldWriter.text(of: .bytes(digest)))"
    }

    private func unsignable(_ missing: MissingComponent, _ request: SigningRequest) -> LoginFailure {
        let advice =
            request.fields == nil
            ? "Here another program sends the request, and its fields are not known. Sign only derived components, or let "
                + "Countersign forward the request."
            : "Send it, or take it out of `sign.message`."
        return LoginFailure(
            .unsignable, challenge: challenge,
            detail: "The signature covers a component that this request cannot provide: \(missing.text). \(advice)")
    }

    private var bodyTooLong: LoginFailure {
        LoginFailure(
            .bodyTooLong, challenge: challenge,
            detail:
                "The signature covers the whole body, and this one is longer than what is kept before it is sent. Raise "
                + "`replay` of the upstream, or take `content-digest` out of `sign.message`.")
    }

    /// Returns 144 random bits of the system's generator, for a request of any path.
    static func randomNonce(_ path: String) -> String? {
        var generator = SystemRandomNumberGenerator()
        return Base64.encode((0..<18).map { _ in UInt8.random(in: .min ... .max, using: &generator) }, .url)
    }
}

/// Text of a request that is signed, with the parameters of the signature (RFC 9421 §2.5).
struct MessageBase {
    /// Inner list of the covered components, with the parameters: the member of `Signature-Input`.
    let input: String
    /// The signature base.
    let bytes: [UInt8]

    /// Creates the base of `components`; throws the first component without a value.
    init(
        _ components: [SignedComponent], _ parameters: StructuredParameters, _ values: MessageValues
    ) throws(MissingComponent) {
        let items = components.map(\.item)
        input = StructuredFieldWriter.text(of: .innerList(items, parameters))
        var bytes: [UInt8] = []
        for (component, item) in zip(components, items) {
            let identifier = StructuredFieldWriter.text(of: item)
            bytes += identifier.utf8
            bytes += ": ".utf8
            do throws(MessageValues.Missing) {
                bytes += try values.value(of: component)
            } catch {
                throw MissingComponent(text: "\(identifier) \(error.reason)")
            }
            bytes.append(.lineFeed)
        }
        bytes += "\"@signature-params\": \(input)".utf8
        self.bytes = bytes
    }
}

/// A component that a request does not have.
struct MissingComponent: Error {
    /// The component and the reason, as a sentence without its full stop.
    let text: String
}
