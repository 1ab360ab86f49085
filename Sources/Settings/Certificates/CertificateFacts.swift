// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling

/// Validity and public key of a server's certificate.
package struct CertificateFacts: Sendable, Equatable {
    /// Start of the validity, in milliseconds since 1970.
    package let begin: Int64
    /// End of the validity, in milliseconds since 1970.
    package let end: Int64
    /// Public key with its algorithm (SubjectPublicKeyInfo, RFC 5280 §4.1.2.7). Pins are digests of these bytes.
    package let publicKey: [UInt8]

    /// Reads a certificate in PEM; nil if the text is not a certificate.
    package init?(pem: String) {
        let lines = pem.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("-----") }
        guard let bytes = Base64.decode(lines.joined().filter { !$0.isWhitespace }) else { return nil }
        guard let dates = CertificateDates(bytes), let begin = Self.moment(dates.begin),
            let end = Self.moment(dates.end),
            let key = Self.publicKey(in: bytes)
        else { return nil }
        self.begin = begin
        self.end = end
        publicKey = key
    }

    /// Returns the last of the seven mandatory fields, which follows issuer, validity and subject.
    private static func publicKey(in certificate: [UInt8]) -> [UInt8]? {
        var outer = DERReader(certificate[...])
        guard let whole = outer.next() else { return nil }
        var inner = DERReader(whole.content)
        guard let toBeSigned = inner.next() else { return nil }
        var fields = DERReader(toBeSigned.content)
        guard let first = fields.next() else { return nil }
        // The version is optional.
        for _ in 0..<(first.tag == 0xA0 ? 5 : 4) {
            guard fields.next() != nil else { return nil }
        }
        return fields.nextWhole().map(Array.init)
    }

    /// Converts `YYYYMMDDhhmmss` in UTC to milliseconds since 1970.
    private static func moment(_ text: String) -> Int64? {
        let digits = text.utf8.map { Int64($0) - 0x30 }
        guard digits.count == 14 else { return nil }
        func number(_ range: Range<Int>) -> Int64 { digits[range].reduce(0) { $0 * 10 + $1 } }
        return Moment.at(
            year: number(0..<4), month: number(4..<6), day: number(6..<8), hours: number(8..<10),
            minutes: number(10..<12),
            seconds: number(12..<14))
    }
}

/// Validity of a certificate (RFC 5280 §4.1.2.5), as sortable texts `YYYYMMDDhhmmss` in UTC.
struct CertificateDates: Equatable {
    var begin: String
    var end: String

    init(begin: String, end: String) {
        self.begin = begin
        self.end = end
    }

    /// Reads a certificate in DER; nil if the bytes are not a certificate.
    ///
    /// The validity is the fifth of the first fields, not counting the optional version.
    init?(_ certificate: [UInt8]) {
        var outer = DERReader(certificate[...])
        guard let whole = outer.next(), whole.tag == DERReader.sequence else { return nil }
        var inner = DERReader(whole.content)
        guard let toBeSigned = inner.next(), toBeSigned.tag == DERReader.sequence else { return nil }
        var fields = DERReader(toBeSigned.content)
        guard var field = fields.next() else { return nil }
        // [0] version.
        if field.tag == 0xA0 {
            guard let serial = fields.next() else { return nil }
            field = serial
        }
        guard field.tag == 0x02, fields.next() != nil, fields.next() != nil, let validity = fields.next(),
            validity.tag == DERReader.sequence
        else { return nil }
        var dates = DERReader(validity.content)
        guard let begin = dates.next().flatMap(Self.date), let end = dates.next().flatMap(Self.date) else { return nil }
        self.init(begin: begin, end: end)
    }

    /// Returns the validity of each certificate in a PEM file; nil for a certificate that cannot be read.
    static func all(inPEM text: String) -> [CertificateDates?] {
        var found: [CertificateDates?] = []
        var base64: String?
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("-----BEGIN CERTIFICATE-----") || line.hasPrefix("-----BEGIN TRUSTED CERTIFICATE-----") {
                base64 = ""
            } else if line.hasPrefix("-----END "), let text = base64 {
                found.append(Base64.decode(text).flatMap(CertificateDates.init))
                base64 = nil
            } else {
                base64?.append(contentsOf: line.filter { !$0.isWhitespace })
            }
        }
        return found
    }

    /// Formats a date as `2026-11-21`.
    static func day(_ date: String) -> String {
        "\(date.prefix(4))-\(date.dropFirst(4).prefix(2))-\(date.dropFirst(6).prefix(2))"
    }

    /// Reads UTCTime (years 1950 to 2049) or GeneralizedTime. Both end with Z.
    private static func date(_ value: (tag: UInt8, content: ArraySlice<UInt8>)) -> String? {
        let text = String(decoding: value.content, as: UTF8.self)
        guard text.hasSuffix("Z"), text.dropLast().utf8.allSatisfy(\.isDigit) else { return nil }
        switch (value.tag, text.utf8.count) {
        case (0x17, 13): return (text >= "5" ? "19" : "20") + text.dropLast()
        case (0x18, 15): return String(text.dropLast())
        default: return nil
        }
    }
}

/// Reader of consecutive values in DER (X.690 §8.1).
struct DERReader {
    static let sequence: UInt8 = 0x30

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    /// Returns the next value with its tag and length; nil as for `next`.
    mutating func nextWhole() -> ArraySlice<UInt8>? {
        let before = rest
        guard next() != nil else { return nil }
        return before.prefix(before.count - rest.count)
    }

    /// Returns the next value; nil at the end, or if the bytes are not a value.
    mutating func next() -> (tag: UInt8, content: ArraySlice<UInt8>)? {
        guard let tag = rest.popFirst(), tag & 0x1F != 0x1F, let first = rest.popFirst() else { return nil }
        var length = Int(first)
        if first >= 0x80 {
            guard (0x81...0x83).contains(first) else { return nil }
            length = 0
            for _ in 0..<first & 0x7F {
                guard let byte = rest.popFirst() else { return nil }
                length = length << 8 | Int(byte)
            }
        }
        guard length <= rest.count else { return nil }
        defer { rest = rest.dropFirst(length) }
        return (tag, rest.prefix(length))
    }
}
