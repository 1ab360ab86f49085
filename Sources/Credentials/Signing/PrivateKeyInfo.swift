// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling
internal import Secrets

/// Private key of any algorithm in PKCS #8 (RFC 5958 §2), read from PEM (RFC 7468 §10).
///
/// swift-crypto reads keys of RSA and of the curves of NIST, but neither Ed25519 (RFC 8410) nor keys that RFC 4055
/// restricts to RSASSA-PSS.
struct PrivateKeyInfo {
    /// Algorithms that are read here.
    enum Algorithm {
        /// RFC 8410 §3.
        case ed25519
        /// RFC 4055 §3.1, without parameters that restrict the key.
        case rsaPSS
    }

    let algorithm: Algorithm
    /// Bytes of the key, in the form of its algorithm. The caller overwrites them.
    private(set) var key: [UInt8]

    private static let marks = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")
    /// Maximum number of characters: enough for RSA of 16384 bits.
    private static let limit = 32 * 1024
    private static let ed25519: [UInt8] = [0x2B, 0x65, 0x70]
    private static let rsaPSS: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0A]

    /// Reads the key; nil if the text is anything but one key of these algorithms.
    init?(pem: Secret) {
        guard pem.count <= Self.limit else { return nil }
        let text = pem.revealText()
        guard let begin = text.firstRange(of: Self.marks.0),
            let end = text[begin.upperBound...].firstRange(of: Self.marks.1),
            text[end.upperBound...].utf8.allSatisfy({ $0 <= 0x20 }),
            text[..<begin.lowerBound].utf8.allSatisfy({ $0 <= 0x20 }),
            var der = Base64.decode(
                String(decoding: text[begin.upperBound..<end.lowerBound].utf8.filter { $0 > 0x20 }, as: UTF8.self))
        else { return nil }
        defer { _ = Secret(taking: &der) }
        self.init(der: der)
    }

    private init?(der: [UInt8]) {
        var outer = DERReader(der[...])
        guard let info = outer.take(.sequence), outer.isAtEnd else { return nil }
        var fields = DERReader(info)
        guard let version = fields.take(.integer), version.elementsEqual([0]) || version.elementsEqual([1]),
            let identifier = fields.take(.sequence), let key = fields.take(.octets)
        else { return nil }
        // The rest is optional: attributes and, in version 1, the public key.
        var parts = DERReader(identifier)
        guard let name = parts.take(.identifier), parts.isAtEnd else { return nil }
        if name.elementsEqual(Self.ed25519) {
            // RFC 8410 §7: an octet string within the octet string.
            var curve = DERReader(key)
            guard let seed = curve.take(.octets), curve.isAtEnd, seed.count == 32 else { return nil }
            (algorithm, self.key) = (.ed25519, Array(seed))
        } else if name.elementsEqual(Self.rsaPSS) {
            (algorithm, self.key) = (.rsaPSS, Array(key))
        } else {
            return nil
        }
    }
}

/// Reader of elements in DER (X.690), one after the other.
private struct DERReader {
    enum Tag: UInt8 {
        case identifier = 0x06
        case integer = 0x02
        case octets = 0x04
        case sequence = 0x30
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    /// Returns the contents of the next element; nil if it has another tag, or is not whole.
    mutating func take(_ tag: Tag) -> ArraySlice<UInt8>? {
        guard rest.popFirst() == tag.rawValue, let length = length(), length <= rest.count else { return nil }
        defer { rest = rest.dropFirst(length) }
        return rest.prefix(length)
    }

    /// Returns a length in its shortest form, below 65,536 (X.690 §10.1).
    private mutating func length() -> Int? {
        guard let first = rest.popFirst() else { return nil }
        if first < 0x80 { return Int(first) }
        guard first == 0x81 || first == 0x82, let high = rest.popFirst() else { return nil }
        if first == 0x81 { return high >= 0x80 ? Int(high) : nil }
        guard high > 0, let low = rest.popFirst() else { return nil }
        return Int(high) << 8 | Int(low)
    }
}
