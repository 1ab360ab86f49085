// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// From when until when a certificate is valid (RFC 5280 §4.1.2.5), each as `YYYYMMDDhhmmss` in UTC, which sorts by itself.
struct CertificateDates: Equatable {
    var begin: String
    var end: String

    init(begin: String, end: String) {
        self.begin = begin
        self.end = end
    }

    /// Those of a certificate in DER: of its seven first fields the fifth, counted without the optional version.
    /// `nil` for what is no certificate.
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

    /// The certificates of a PEM file; `nil` in place of one that cannot be read.
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

    /// `2026-11-21`, for people.
    static func day(_ date: String) -> String {
        "\(date.prefix(4))-\(date.dropFirst(4).prefix(2))-\(date.dropFirst(6).prefix(2))"
    }

    /// UTCTime, whose years go from 1950 to 2049, or GeneralizedTime; both end with Z.
    private static func date(_ value: (tag: UInt8, content: ArraySlice<UInt8>)) -> String? {
        let text = String(decoding: value.content, as: UTF8.self)
        guard text.hasSuffix("Z"), text.dropLast().utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        switch (value.tag, text.utf8.count) {
        case (0x17, 13): return (text >= "5" ? "19" : "20") + text.dropLast()
        case (0x18, 15): return String(text.dropLast())
        default: return nil
        }
    }
}
