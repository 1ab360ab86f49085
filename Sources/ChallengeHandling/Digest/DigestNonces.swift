// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets
internal import Synchronization

/// One nonce of the server and ours beside it, how often they were used, and what all answers to them have in common.
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
    /// The count of the request signed last.
    private let used: Atomic<UInt32>
    /// Parts of an answer: before the count, and behind it. RFC 7616 §3.4: `algorithm`, `qop` and `nc` are never quoted.
    private let beforeCount: String
    private let behindCount: String

    /// `secret` is the hash of name, realm and password, in hexadecimal digits.
    init(
        _ challenge: DigestChallenge, nonce: String, clientNonce: String, count: UInt32 = 0, secret: Secret,
        digests: any MessageDigests
    ) {
        self.challenge = challenge
        self.nonce = nonce
        self.clientNonce = clientNonce
        self.digests = digests
        used = Atomic(count)
        key =
            challenge.isSession
            ? Self.hash([secret, Secret(":\(nonce):\(clientNonce)")], challenge.algorithm, digests) : secret
        beforeCount =
            (challenge.algorithmName.map { ", algorithm=\($0)" } ?? "") + ", nonce=\(quoted(nonce))"
            + (challenge.protection == nil ? "" : ", nc=")
        behindCount =
            challenge.protection.map { ", cnonce=\"\(clientNonce)\", qop=\($0.rawValue)" } ?? ""
    }

    /// The count of the request signed last.
    var count: UInt32 { used.load(ordering: .relaxed) }

    /// The count of the next request, which no other has: but for the last of all, for which the server gives a new nonce, without
    /// harm.
    func next() -> UInt32 {
        var count = used.load(ordering: .relaxed)
        while count < .max {
            let (isOurs, found) = used.compareExchange(expected: count, desired: count + 1, ordering: .relaxed)
            if isOurs { return count + 1 }
            count = found
        }
        return .max
    }

    /// Adds the answer's parameters from `algorithm` to `response`. `scratch` is for what is hashed.
    func append(
        _ method: String, _ target: String, count: UInt32, body: [UInt8]?, to answer: inout SecretBuilder,
        scratch: inout SecretBuilder
    ) {
        answer.append(beforeCount)
        if challenge.protection != nil { answer.append(digits: count) }
        answer.append(behindCount)
        answer.append(", response=\"")
        answer.append(hexadecimal: proof(method: method, target: target, count: count, body: body, scratch: &scratch))
        answer.append("\"")
    }

    /// The hash of `parts`, one after the other, in lower-case hexadecimal digits.
    static func hash(_ parts: [Secret], _ algorithm: DigestAlgorithm, _ digests: any MessageDigests) -> Secret {
        var builder = SecretBuilder(capacity: parts.reduce(0) { $0 + $1.count })
        for part in parts { builder.append(part) }
        let digest = builder.withBytes { digests.digest(algorithm, of: $0) }
        builder.removeAll()
        builder.append(hexadecimal: digest)
        return builder.finish()
    }

    /// The proof for a request of `method` for `target` (RFC 7616 §3.4.1); with an empty method that of its answer (`rspauth`, §3.5).
    /// `body` is the digest of the body, where there is one and it is protected (§3.4.3).
    func proof(
        method: String, target: String, count: UInt32, body: [UInt8]? = nil, scratch: inout SecretBuilder
    ) -> [UInt8] {
        scratch.removeAll()
        scratch.append(method)
        scratch.append(UInt8(ascii: ":"))
        scratch.append(target)
        if challenge.protection == .integrity {
            scratch.append(UInt8(ascii: ":"))
            scratch.append(hexadecimal: body ?? digests.digest(challenge.algorithm, of: []))
        }
        let request = scratch.withBytes { digests.digest(challenge.algorithm, of: $0) }
        scratch.removeAll()
        scratch.append(key)
        scratch.append(UInt8(ascii: ":"))
        scratch.append(nonce)
        scratch.append(UInt8(ascii: ":"))
        if let protection = challenge.protection {
            scratch.append(digits: count)
            scratch.append(UInt8(ascii: ":"))
            scratch.append(clientNonce)
            scratch.append(UInt8(ascii: ":"))
            scratch.append(protection.rawValue)
            scratch.append(UInt8(ascii: ":"))
        }
        scratch.append(hexadecimal: request)
        return scratch.withBytes { digests.digest(challenge.algorithm, of: $0) }
    }
}

extension SecretBuilder {
    /// Adds bytes as lower-case hexadecimal digits.
    mutating func append(hexadecimal bytes: [UInt8]) {
        for byte in bytes {
            append(Self.digit(byte >> 4))
            append(Self.digit(byte & 15))
        }
    }

    /// Adds eight hexadecimal digits.
    fileprivate mutating func append(digits count: UInt32) {
        var shift: UInt32 = 32
        while shift > 0 {
            shift &-= 4
            append(Self.digit(UInt8(truncatingIfNeeded: count >> shift & 15)))
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value + (value < 10 ? 0x30 : 0x57) }
}

/// `text` as a quoted string (RFC 9110 §5.6.4).
func quoted(_ text: String) -> String {
    var quoted = "\""
    for sign in text.unicodeScalars {
        if sign == "\"" || sign == "\\" { quoted.unicodeScalars.append("\\") }
        quoted.unicodeScalars.append(sign)
    }
    return quoted + "\""
}
