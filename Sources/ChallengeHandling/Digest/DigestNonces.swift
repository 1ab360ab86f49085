// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets
internal import Synchronization

/// A server nonce, its client nonce, their uses, and the constant parts of answers.
final class DigestNonces: Sendable {
    /// The server's nonce.
    let nonce: String
    /// The client nonce, constant as long as the server's. Some servers compute the session key from the first request,
    /// others from each (RFC 7616 §3.4.2 allows both readings); a constant nonce suits both.
    let clientNonce: String
    private let challenge: DigestChallenge
    private let digests: any MessageDigests
    /// The hash of A1 in hexadecimal digits: as sensitive as the password in this realm.
    private let key: Secret
    /// The count of the request signed last.
    private let used: Atomic<UInt32>
    /// Parts of an answer before and after the count. `algorithm`, `qop` and `nc` are never quoted (RFC 7616 §3.4).
    private let beforeCount: String
    private let afterCount: String

    /// Creates the nonces; `secret` is the hash of name, realm and password in hexadecimal digits.
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
        afterCount =
            challenge.protection.map { ", cnonce=\"\(clientNonce)\", qop=\($0.rawValue)" } ?? ""
    }

    /// The count of the request signed last.
    var count: UInt32 { used.load(ordering: .relaxed) }

    /// Returns the count for the next request, unique until `UInt32.max`. Repeating the last count is harmless: the
    /// server answers with a new nonce.
    func next() -> UInt32 {
        var count = used.load(ordering: .relaxed)
        while count < .max {
            let (isOurs, found) = used.compareExchange(expected: count, desired: count + 1, ordering: .relaxed)
            if isOurs { return count + 1 }
            count = found
        }
        return .max
    }

    /// Appends the answer's parameters from `algorithm` to `response`. `scratch` holds the text to hash.
    func append(
        _ method: String, _ target: String, count: UInt32, body: [UInt8]?, to answer: inout SecretBuilder,
        scratch: inout SecretBuilder
    ) {
        answer.append(beforeCount)
        if challenge.protection != nil { answer.append(digits: count) }
        answer.append(afterCount)
        answer.append(", response=\"")
        answer.append(hexadecimal: proof(method: method, target: target, count: count, body: body, scratch: &scratch))
        answer.append("\"")
    }

    /// Returns the hash of the concatenated `parts` in lower-case hexadecimal digits.
    static func hash(_ parts: [Secret], _ algorithm: DigestAlgorithm, _ digests: any MessageDigests) -> Secret {
        var builder = SecretBuilder(capacity: parts.reduce(0) { $0 + $1.count })
        for part in parts { builder.append(part) }
        let digest = builder.withBytes { digests.digest(algorithm, of: $0) }
        builder.removeAll()
        builder.append(hexadecimal: digest)
        return builder.finish()
    }

    /// Returns the response value for a request (RFC 7616 §3.4.1). With an empty method it is `rspauth`, the value of
    /// the server's answer (§3.5). `body` is the digest of the body, if there is one and it is protected (§3.4.3).
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
    /// Appends bytes as lower-case hexadecimal digits.
    mutating func append(hexadecimal bytes: [UInt8]) {
        for byte in bytes {
            append(Self.digit(byte >> 4))
            append(Self.digit(byte & 15))
        }
    }

    /// Appends a count as eight hexadecimal digits.
    fileprivate mutating func append(digits count: UInt32) {
        var shift: UInt32 = 32
        while shift > 0 {
            shift &-= 4
            append(Self.digit(UInt8(truncatingIfNeeded: count >> shift & 15)))
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value + (value < 10 ? 0x30 : 0x57) }
}

/// Returns `text` as a quoted string (RFC 9110 §5.6.4).
func quoted(_ text: String) -> String {
    var quoted = "\""
    for sign in text.unicodeScalars {
        if sign == "\"" || sign == "\\" { quoted.unicodeScalars.append("\\") }
        quoted.unicodeScalars.append(sign)
    }
    return quoted + "\""
}
