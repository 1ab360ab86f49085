// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// One nonce of the server and ours beside it: all that the answers to it have in common.
final class DigestNonces: Sendable {
    /// The server's nonce.
    let nonce: String
    /// Ours. It stays the same for as long as the server's does, so that those who compute the key of a session from
    /// the first request and those who do from each (RFC 7616 §3.4.2 can be read both ways) agree.
    let clientNonce: String
    private let challenge: DigestChallenge
    private let digests: any MessageDigests
    /// The hash of A1, in hexadecimal digits: as good as the password in this realm.
    private let key: Secret

    /// `secret` is the hash of name, realm and password, in hexadecimal digits.
    init(
        _ challenge: DigestChallenge, nonce: String, clientNonce: String, secret: Secret, digests: any MessageDigests
    ) {
        self.challenge = challenge
        self.nonce = nonce
        self.clientNonce = clientNonce
        self.digests = digests
        key =
            challenge.isSession
            ? Self.hash([secret, Secret(":\(nonce):\(clientNonce)")], challenge.algorithm, digests) : secret
    }

    /// The hash of `parts`, one after the other, in lower-case hexadecimal digits.
    static func hash(_ parts: [Secret], _ algorithm: DigestAlgorithm, _ digests: any MessageDigests) -> Secret {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(parts.reduce(0) { $0 + $1.count })
        for part in parts { part.withBytes { part in for index in part.indices { bytes.append(part[index]) } } }
        var digits = hexadecimal(digests.digest(algorithm, of: bytes))
        _ = Secret(taking: &bytes)
        return Secret(taking: &digits)
    }

    /// The proof for a request of `method` for `target` (RFC 7616 §3.4.1), in hexadecimal digits; with an empty method
    /// that of its answer (`rspauth`, §3.5). `count` is the nonce's, eight digits; `body` the digest of the body, where there
    /// is one and it is protected (§3.4.3).
    func proof(method: String, target: String, count: String, body: [UInt8]? = nil) -> String {
        var request = "\(method):\(target)"
        if challenge.protection == .integrity {
            let digits = body.map { String(decoding: Self.hexadecimal($0), as: UTF8.self) }
            request += ":\(digits ?? hash(""))"
        }
        let protected = challenge.protection.map { "\(count):\(clientNonce):\($0.rawValue):" } ?? ""
        return Self.hash(
            [key, Secret(":\(nonce):\(protected)\(hash(request))")], challenge.algorithm, digests
        ).revealText()
    }

    private func hash(_ text: String) -> String {
        String(decoding: Self.hexadecimal(digests.digest(challenge.algorithm, of: Array(text.utf8))), as: UTF8.self)
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
        var digits: [UInt8] = []
        digits.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] { digits.append(digit + (digit < 10 ? 0x30 : 0x57)) }
        }
        return digits
    }
}
