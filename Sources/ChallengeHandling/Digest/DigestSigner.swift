// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
internal import Secrets
internal import Synchronization

/// Answers a Digest challenge anew for each request (RFC 7616 §3.4): one nonce serves many, from any thread, each with a
/// count of its own. Workers sign by their views of it.
public final class DigestSigner: RequestSigner {
    private let challenge: DigestChallenge
    private let challengeName: String
    private let space: DigestSpace
    /// Where the challenge was met.
    private let url: WebURL
    private let secret: Secret
    private let digests: any MessageDigests
    private let makeNonce: @Sendable () -> String
    /// What stands in every answer before and after that which changes.
    private let opening: Secret
    private let closing: String
    private let current: Mutex<DigestNonces>
    private let changes = Atomic<UInt64>(0)
    /// True if the server has taken an answer.
    private let isAccepted = Atomic(false)

    /// A signer of answers to `challenge`, which came from `url`. `name` is the challenge's in the configuration;
    /// `makeNonce` makes client nonces that nobody can guess.
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

    /// The signer that `image` was taken of; `nil` where there is no challenge in it that we can answer.
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

    /// What another process needs, besides the password, to go on with the nonce in force.
    private var snapshot: DigestImage {
        let nonces = self.nonces
        return DigestImage(
            parameters: challenge.parameters(nonce: nonces.nonce), url: url, clientNonce: nonces.clientNonce,
            count: nonces.count, isAccepted: isAccepted.load(ordering: .relaxed))
    }

    /// The same as bytes.
    public var image: SignerImage? { snapshot.encoded }

    /// A server may count a nonce's uses, and not call it stale when they are spent.
    public var wearsOut: Bool { true }

    /// `Authorization`.
    public var names: [HTTPField.Name] { [.authorization] }

    /// The answer for one request; none outside the challenge's protection space. Throws `login-failed` where the server
    /// wants bodies to be protected (RFC 7616 §3.4.3), and this one is not known as a whole before it is sent.
    public func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        try SignedFields(request, by: makeView())
    }

    /// A view that takes the lock after a change of the nonce only.
    public func makeView() -> any SignerView { DigestSignerView(self) }

    /// Where the server protects bodies only.
    public func bodyDigest(for target: String) -> (any RunningDigest)? {
        guard challenge.protection == .integrity, isMeant(target) else { return nil }
        return digests.running(challenge.algorithm)
    }

    /// `Authentication-Info`.
    public var learnsFrom: [HTTPField.Name]? { [.authenticationInfo] }

    /// Takes the nonce that the server wants next (`nextnonce`), unless what it says to prove itself (`rspauth`) is wrong.
    public func learn(status: Int, fields: HTTPFields, target: String) {
        guard status != 401, status != 429, status < 500 else { return }
        if !isAccepted.load(ordering: .relaxed) { isAccepted.store(true, ordering: .relaxed) }
        guard let info = AuthenticationInfo(fields[values: .authenticationInfo]),
            let next = info["nextnonce"], !next.isEmpty, !challenge.isSession
        else { return }
        let nonces = self.nonces
        // What answers a request of an earlier nonce comes too late.
        guard next != nonces.nonce, info["cnonce"].map({ $0 == nonces.clientNonce }) ?? true,
            isProven(info, nonces, target)
        else { return }
        let fresh = DigestNonces(
            challenge, nonce: next, clientNonce: makeNonce(), secret: secret, digests: digests)
        current.withLock { current in
            guard current === nonces else { return }
            current = fresh
            changes.wrappingAdd(1, ordering: .releasing)
        }
    }

    /// 144 bits of the system's randomness.
    public static func randomNonce() -> String {
        var generator = SystemRandomNumberGenerator()
        return Base64.encode((0..<18).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }
}

extension DigestSigner {
    /// The nonce in force.
    var nonces: DigestNonces { current.withLock { $0 } }

    /// A number that grows with each change of the nonce.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    /// True if a request for `target` is to carry an answer.
    func isMeant(_ target: String) -> Bool {
        // The request that tries the session must carry it, or its refusal would be taken for the credential's.
        space.contains(target) || !isAccepted.load(ordering: .relaxed)
    }

    /// Writes the next answer by `nonces` into `answer`. `scratch` is for what is hashed.
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

    /// The digest that protects `body`; `nil` where nothing does.
    private func digest(of body: SigningRequest.Body) throws(LoginFailure) -> [UInt8]? {
        guard challenge.protection == .integrity else { return nil }
        switch body {
        case .none: return nil
        case .digests(let digests):
            if let digest = digests.first(where: { $0.algorithm == challenge.algorithm }) { return digest.bytes }
        case .unread: break
        }
        throw LoginFailure(
            .failed, challenge: challengeName,
            detail:
                "The server offers Digest with qop=\"auth-int\" only, which protects the request's body, and this one is "
                + "longer than what is kept of a body before it is sent. Raise `replay` of the upstream, or have the server "
                + "offer qop=\"auth\" too.")
    }

    /// Whether the server proves that it knows the password too, or says nothing of it. One that protects bodies proves
    /// it by that of its answer, which is not looked at.
    private func isProven(_ info: AuthenticationInfo, _ nonces: DigestNonces, _ target: String) -> Bool {
        guard let proof = info["rspauth"], let digits = info["nc"], challenge.protection == .authentication,
            let count = UInt32(digits, radix: 16)
        else { return true }
        var scratch = SecretBuilder()
        var expected = SecretBuilder()
        expected.append(hexadecimal: nonces.proof(method: "", target: target, count: count, scratch: &scratch))
        return expected.finish() == Secret(proof.lowercased())
    }

    /// `username`, or `username*` (RFC 8187) for what only a server that reads UTF-8 can be sent safely.
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
