// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
internal import Secrets
internal import Synchronization

/// Answers a Digest challenge anew for each request (RFC 7616 §3.4): one nonce serves many, from any thread, each with a
/// count of its own.
public final class DigestSigner: RequestSigner {
    /// A request whose answer may still come, to check `rspauth` by.
    private struct Signed {
        var count: UInt32
        var target: String
        var nonces: DigestNonces
    }

    private struct State {
        var nonces: DigestNonces
        /// The count of the request signed last.
        var count: UInt32 = 0
        /// The latest; that of a count at `(count - 1) % remembered`.
        var signed: [Signed] = []
        /// Whether the server has taken an answer.
        var isAccepted = false
    }

    /// So many requests are remembered for `rspauth`; what comes later is not checked.
    private static let remembered: UInt32 = 64

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
    private let state: Mutex<State>

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
        state = Mutex(
            State(
                nonces: DigestNonces(
                    challenge, nonce: challenge.nonce, clientNonce: makeNonce(), secret: secret, digests: digests)))
    }

    /// The signer that `image` was taken of; `nil` where there is no challenge in it that we can answer.
    convenience init?(
        _ image: DigestImage, for pair: NameAndPassword, name: String, digests: any MessageDigests
    ) {
        let said = AuthenticationChallenge(scheme: "Digest", token68: nil, parameters: image.parameters)
        guard let challenge = DigestChallenge(said) else { return nil }
        self.init(challenge, at: image.url, for: pair, name: name, digests: digests)
        let nonces = DigestNonces(
            challenge, nonce: challenge.nonce, clientNonce: image.clientNonce, secret: secret, digests: digests)
        state.withLock { $0 = State(nonces: nonces, count: image.count, isAccepted: image.isAccepted) }
    }

    /// What another process needs, besides the password, to go on with the nonce in force.
    private var snapshot: DigestImage {
        state.withLock { state in
            DigestImage(
                parameters: challenge.parameters(nonce: state.nonces.nonce), url: url,
                clientNonce: state.nonces.clientNonce, count: state.count, isAccepted: state.isAccepted)
        }
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
        guard isMeant(request.target) else { return SignedFields() }
        let (target, body) = (request.target, try digest(of: request.body))
        let (nonces, count) = state.withLock { state in
            // At the end of all counts the server refuses one used before and gives a new nonce, without harm.
            if state.count < .max { state.count += 1 }
            let signed = Signed(count: state.count, target: target, nonces: state.nonces)
            if state.signed.count < Self.remembered {
                state.signed.append(signed)
            } else {
                state.signed[Int((state.count - 1) % Self.remembered)] = signed
            }
            return (state.nonces, state.count)
        }
        return SignedFields([
            InjectedField(name: .authorization, value: answer(request.method, target, nonces, count, body))
        ])
    }

    /// Where the server protects bodies only.
    public func bodyDigest(for target: String) -> (any RunningDigest)? {
        guard challenge.protection == .integrity, isMeant(target) else { return nil }
        return digests.running(challenge.algorithm)
    }

    /// Takes the nonce that the server wants next (`nextnonce`), unless what it says to prove itself (`rspauth`) is wrong.
    public func learn(status: Int, fields: HTTPFields) {
        guard status != 401, status != 429, status < 500 else { return }
        state.withLock { $0.isAccepted = true }
        guard let info = AuthenticationInfo(fields[values: .authenticationInfo]),
            let next = info["nextnonce"], !next.isEmpty, !challenge.isSession
        else { return }
        let current = state.withLock { $0.nonces }
        // What answers a request of an earlier nonce comes too late.
        guard next != current.nonce, info["cnonce"].map({ $0 == current.clientNonce }) ?? true,
            isProven(info, current)
        else { return }
        let fresh = DigestNonces(
            challenge, nonce: next, clientNonce: makeNonce(), secret: secret, digests: digests)
        state.withLock { state in
            guard state.nonces === current else { return }
            state.nonces = fresh
            state.count = 0
            state.signed = []
        }
    }

    /// 144 bits of the system's randomness.
    public static func randomNonce() -> String {
        var generator = SystemRandomNumberGenerator()
        return Base64.encode((0..<18).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }
}

extension DigestSigner {
    /// RFC 7616 §3.4: `algorithm`, `qop` and `nc` are never quoted, for historical reasons.
    private func answer(
        _ method: String, _ target: String, _ nonces: DigestNonces, _ count: UInt32, _ body: [UInt8]?
    ) -> Secret {
        let digits = Self.digits(count)
        var text = ", uri=\(quoted(target))"
        if let algorithm = challenge.algorithmName { text += ", algorithm=\(algorithm)" }
        text += ", nonce=\(quoted(nonces.nonce))"
        if let protection = challenge.protection {
            text += ", nc=\(digits), cnonce=\"\(nonces.clientNonce)\", qop=\(protection.rawValue)"
        }
        text += ", response=\"\(nonces.proof(method: method, target: target, count: digits, body: body))\""
        return .joining([opening, Secret(text + closing)])
    }

    private func isMeant(_ target: String) -> Bool {
        // The request that tries the session must carry it, or its refusal would be taken for the credential's.
        space.contains(target) || !state.withLock { $0.isAccepted }
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
    private func isProven(_ info: AuthenticationInfo, _ nonces: DigestNonces) -> Bool {
        guard let proof = info["rspauth"], let digits = info["nc"], challenge.protection == .authentication,
            let count = UInt32(digits, radix: 16)
        else { return true }
        let signed = state.withLock { $0.signed.first { $0.count == count && $0.nonces === nonces } }
        guard let signed else { return true }
        return nonces.proof(method: "", target: signed.target, count: Self.digits(count)) == proof.lowercased()
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

    /// Eight hexadecimal digits.
    private static func digits(_ count: UInt32) -> String {
        let digits = String(count, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}

/// `text` as a quoted string (RFC 9110 §5.6.4).
private func quoted(_ text: String) -> String {
    var quoted = "\""
    for sign in text.unicodeScalars {
        if sign == "\"" || sign == "\\" { quoted.unicodeScalars.append("\\") }
        quoted.unicodeScalars.append(sign)
    }
    return quoted + "\""
}
