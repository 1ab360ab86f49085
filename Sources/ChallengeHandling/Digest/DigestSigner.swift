// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
internal import Secrets
internal import Synchronization

/// Signer that answers a Digest challenge for each request (RFC 7616 §3.4). One nonce serves many requests from any
/// thread, each with its own count. Workers sign through their views of the signer.
public final class DigestSigner: RequestSigner {
    private let challenge: DigestChallenge
    private let challengeName: String
    private let space: DigestSpace
    /// The address that sent the challenge.
    private let url: WebURL
    private let secret: Secret
    private let digests: any MessageDigests
    private let makeNonce: @Sendable () -> String
    /// The constant parts of every answer, before and after the varying ones.
    private let opening: Secret
    private let closing: String
    private let current: Mutex<DigestNonces>
    private let changes = Atomic<UInt64>(0)
    /// True if the server has accepted an answer.
    private let isAccepted = Atomic(false)

    /// Creates a signer of answers to `challenge`, which came from `url`. `name` is the challenge's name in the
    /// configuration; `makeNonce` makes unpredictable client nonces.
    public init(
        _ challenge: DigestChallenge, at url: WebURL, for pair: NameAndPassword, name: String,
        digests: any MessageDigests, makeNonce: @escaping @Sendable () -> String = DigestSigner.randomNonce
    ) {
        self.challenge = challenge
        challengeName = name
        self.digests = digests
        self.makeNonce = makeNonce
        self.url = url
        space = DigestSpace(domain: challenge.domain, challengedAt: url)
        let user = Secret.joining([pair.username, Secret(":\(challenge.realm)")])
        secret = DigestNonces.hash([user, Secret(":"), pair.password], challenge.algorithm, digests)
        opening = .joining([
            Secret("Digest "), Self.user(pair.username, user, challenge, digests),
            Secret(", realm=\(quoted(challenge.realm))"),
        ])
        closing =
            (challenge.opaque.map { ", opaque=\(quoted($0))" } ?? "")
            + (challenge.hashesUserName ? ", userhash=true" : "")
        current = Mutex(
            DigestNonces(challenge, nonce: challenge.nonce, clientNonce: makeNonce(), secret: secret, digests: digests))
    }

    /// Restores the signer of `image`; `nil` if its challenge cannot be answered.
    convenience init?(
        _ image: DigestImage, for pair: NameAndPassword, name: String, digests: any MessageDigests
    ) {
        let said = AuthenticationChallenge(scheme: "Digest", token68: nil, parameters: image.parameters)
        guard let challenge = DigestChallenge(said) else { return nil }
        self.init(challenge, at: image.url, for: pair, name: name, digests: digests)
        let nonces = DigestNonces(
            challenge, nonce: challenge.nonce, clientNonce: image.clientNonce, count: image.count, secret: secret,
            digests: digests)
        current.withLock { $0 = nonces }
        isAccepted.store(image.isAccepted, ordering: .relaxed)
    }

    /// The state that another process needs, besides the password, to continue with the current nonce.
    private var snapshot: DigestImage {
        let nonces = self.nonces
        return DigestImage(
            parameters: challenge.parameters(nonce: nonces.nonce), url: url, clientNonce: nonces.clientNonce,
            count: nonces.count, isAccepted: isAccepted.load(ordering: .relaxed))
    }

    /// The state for another process as bytes.
    public var image: SignerImage? { snapshot.encoded }

    /// True: a server may limit a nonce's uses without calling the nonce stale afterwards.
    public var wearsOut: Bool { true }

    /// `Authorization`.
    public var names: [HTTPField.Name] { [.authorization] }

    /// Returns the answer for one request; empty outside the challenge's protection space. Throws `login-failed` if the
    /// server requires protected bodies (RFC 7616 §3.4.3) and this body is not known in full before it is sent.
    public func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        try SignedFields(request, by: makeView())
    }

    /// Returns a view that takes the lock only after the nonce has changed.
    public func makeView() -> any SignerView { DigestSignerView(self) }

    /// Returns a running digest for the body, if the server protects bodies.
    public func bodyReader(for target: String) -> (any BodyReader)? {
        guard challenge.protection == .integrity, isMeant(target) else { return nil }
        return digests.running(challenge.algorithm)
    }

    /// `Authentication-Info`.
    public var learnsFrom: [HTTPField.Name]? { [.authenticationInfo] }

    /// Adopts the server's next nonce (`nextnonce`), unless the server's own proof (`rspauth`) is wrong.
    public func learn(status: Int, fields: HTTPFields, target: String) {
        guard status != 401, !InconclusiveStatus.contains(status) else { return }
        if !isAccepted.load(ordering: .relaxed) { isAccepted.store(true, ordering: .relaxed) }
        guard let info = AuthenticationInfo(fields[values: .authenticationInfo]),
            let next = info["nextnonce"], !next.isEmpty, !challenge.isSession
        else { return }
        let nonces = self.nonces
        // An answer to a request with an earlier nonce comes too late.
        guard next != nonces.nonce, info["cnonce"].map({ $0 == nonces.clientNonce }) ?? true,
            isVerified(info, nonces, target)
        else { return }
        let fresh = DigestNonces(
            challenge, nonce: next, clientNonce: makeNonce(), secret: secret, digests: digests)
        current.withLock { current in
            guard current === nonces else { return }
            current = fresh
            changes.wrappingAdd(1, ordering: .releasing)
        }
    }

    /// Returns 144 random bits of the system's generator.
    public static func randomNonce() -> String {
        var generator = SystemRandomNumberGenerator()
        return Base64.encode((0..<18).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }
}

extension DigestSigner {
    /// The current nonces.
    var nonces: DigestNonces { current.withLock { $0 } }

    /// A number that grows with each change of the nonce.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Returns whether a request for `target` must carry an answer.
    func isMeant(_ target: String) -> Bool {
        // The request that verifies the session must carry the answer, or its refusal would count against the
        // credential.
        space.contains(target) || !isAccepted.load(ordering: .relaxed)
    }

    /// Writes the next answer with `nonces` into `answer`. `scratch` holds the text to hash.
    func write(
        _ request: SigningRequest, by nonces: DigestNonces, to answer: inout SecretBuilder,
        scratch: inout SecretBuilder
    ) throws(LoginFailure) {
        let body = try digest(of: request.body)
        answer.removeAll()
        answer.append(opening)
        answer.append(", uri=\"")
        let isPlain = !request.target.utf8.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }
        if isPlain {
            answer.append(request.target)
        } else {
            answer.append(String(quoted(request.target).dropFirst().dropLast()))
        }
        answer.append("\"")
        nonces.append(
            request.method, request.target, count: nonces.next(), body: body, to: &answer, scratch: &scratch)
        answer.append(closing)
    }

    /// Returns the digest that protects `body`; `nil` if bodies are not protected.
    private func digest(of body: SigningRequest.Body) throws(LoginFailure) -> [UInt8]? {
        guard challenge.protection == .integrity else { return nil }
        if case .none = body { return nil }
        if let digest = body.bytes(.digest(challenge.algorithm)) { return digest }
        throw LoginFailure(
            .failed, challenge: challengeName,
            detail:
                "The server offers Digest with qop=\"auth-int\" only, which protects the request's body, and this one is "
                + "longer than the part of a body that is buffered before it is sent. Raise `replay` of the upstream, "
                + "or have the server offer qop=\"auth\" too.")
    }

    /// Returns whether the server proves that it knows the password, or offers no proof. A server that protects bodies
    /// proves it with the digest of its own body, which is not checked.
    private func isVerified(_ info: AuthenticationInfo, _ nonces: DigestNonces, _ target: String) -> Bool {
        guard let proof = info["rspauth"], let digits = info["nc"], challenge.protection == .authentication,
            let count = UInt32(digits, radix: 16)
        else { return true }
        var scratch = SecretBuilder()
        var expected = SecretBuilder()
        expected.append(hexadecimal: nonces.proof(method: "", target: target, count: count, scratch: &scratch))
        return expected.finish() == Secret(proof.lowercased())
    }

    /// Returns `username`, or `username*` (RFC 8187) for a non-ASCII name. The latter needs a server that reads UTF-8.
    private static func user(
        _ username: Secret, _ user: Secret, _ challenge: DigestChallenge, _ digests: any MessageDigests
    ) -> Secret {
        if challenge.hashesUserName {
            return .joining([
                Secret("username=\""), DigestNonces.hash([user], challenge.algorithm, digests), Secret("\""),
            ])
        }
        let text = username.revealText()
        guard challenge.isUTF8, !text.utf8.allSatisfy({ $0 < 0x80 }) else { return Secret("username=\(quoted(text))") }
        return Secret("username*=UTF-8''\(FormEncoding.percentEncoded(text))")
    }
}

/// One worker's view of a Digest signer. It takes a lock and makes a new secret only after the nonce has changed.
final class DigestSignerView: SignerView {
    private let signer: DigestSigner
    private var version: UInt64
    private var nonces: DigestNonces
    /// Buffers for the answer and for the text to hash, reused by the next request.
    private var answer = SecretBuilder(capacity: 512)
    private var scratch = SecretBuilder(capacity: 256)

    init(_ signer: DigestSigner) {
        self.signer = signer
        // Read before the nonces: a later change makes the next request read them again.
        version = signer.version
        nonces = signer.nonces
    }

    func sign(
        _ request: SigningRequest, _ write: (HTTPField.Name, Span<UInt8>) -> Void
    ) throws(LoginFailure) -> (any AnswerCheck)? {
        guard signer.isMeant(request.target) else { return nil }
        let version = signer.version
        if version != self.version { (nonces, self.version) = (signer.nonces, version) }
        try signer.write(request, by: nonces, to: &answer, scratch: &scratch)
        answer.withBytes { write(.authorization, $0) }
        return nil
    }
}
