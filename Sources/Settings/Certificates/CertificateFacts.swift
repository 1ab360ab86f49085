// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// What somebody who looks into a server's certificate wants to know of it, besides its names.
package struct CertificateFacts: Sendable, Equatable {
    /// Since when it is valid, in milliseconds since 1970.
    package let begin: Int64
    /// Until when.
    package let end: Int64
    /// Its public key with the algorithm (SubjectPublicKeyInfo, RFC 5280 §4.1.2.7), which pins are digests of.
    package let publicKey: [UInt8]

    /// Those of a certificate in PEM; `nil` for what is none.
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

    /// The last of the seven fields that are always there, behind issuer, dates and subject.
    private static func publicKey(in certificate: [UInt8]) -> [UInt8]? {
        var outer = DERReader(certificate[...])
        guard let whole = outer.next() else { return nil }
        var inner = DERReader(whole.content)
        guard let toBeSigned = inner.next() else { return nil }
        var fields = DERReader(toBeSigned.content)
        guard let first = fields.next() else { return nil }
        // The version may be left out.
        for _ in 0..<(first.tag == 0xA0 ? 5 : 4) {
            guard fields.next() != nil else { return nil }
        }
        return fields.nextWhole().map(Array.init)
    }

    /// `YYYYMMDDhhmmss` in UTC.
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
