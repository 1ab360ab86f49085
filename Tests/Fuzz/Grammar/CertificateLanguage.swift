// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

@testable import Settings

/// Certificates in DER (X.690, RFC 5280 §4.1) as far as their dates, with every other field of any content.
struct CertificateLanguage: Language {
    static let name = "certificates"

    var sentence = Sentence()
    private var expected: CertificateDates?

    mutating func write() {
        let fault = sentence.choices.once(in: 4) ? sentence.choices.below(9) : -1
        let begin = date(isBroken: fault == 0)
        let end = date(isBroken: fault == 1)
        expected = fault < 0 ? CertificateDates(begin: begin.text, end: end.text) : nil
        var validity = begin.bytes + end.bytes
        if fault == 2 { validity = begin.bytes }
        var fields: [UInt8] = []
        if sentence.choices.flip() { fields += written(0xA0, written(2, [UInt8(sentence.choices.below(3))])) }
        fields += written(fault == 3 ? 4 : 2, anything())
        fields += written(0x30, anything())
        // Without one of them another field is at the place of the dates.
        if fault != 4 { fields += written(0x30, anything()) }
        fields += written(fault == 5 ? 0x31 : 0x30, validity)
        fields += fault == 4 ? written(4, []) : written(0x30, anything())
        let signed = written(fault == 6 ? 0x31 : 0x30, fields)
        var whole = written(0x30, signed + written(0x30, []) + written(3, anything()))
        if fault == 7 { whole[1] = 0x80 }
        if fault == 8 { whole.removeLast(1 + sentence.choices.below(whole.count - 1)) }
        sentence.put(whole)
        if fault < 0, sentence.choices.once(in: 8) { sentence.put("\0\0") }
    }

    private mutating func date(isBroken: Bool) -> (bytes: [UInt8], text: String) {
        let isShort = sentence.choices.flip()
        var digits: [UInt8] = []
        for _ in 0..<(isShort ? 12 : 14) { digits.append(UInt8(0x30 + sentence.choices.below(10))) }
        let text = (isShort ? (digits[0] >= 0x35 ? "19" : "20") : "") + String(decoding: digits, as: UTF8.self)
        guard isBroken else { return (written(isShort ? 0x17 : 0x18, digits + [0x5A]), text) }
        switch sentence.choices.below(5) {
        case 0: return (written(isShort ? 0x18 : 0x17, digits + [0x5A]), text)
        case 1: return (written(isShort ? 0x17 : 0x18, digits), text)
        case 2: return (written(isShort ? 0x17 : 0x18, digits + Array("+0100".utf8)), text)
        case 3: return (written(isShort ? 0x17 : 0x18, digits.dropLast() + Array("aZ".utf8)), text)
        default: return (written(0x04, digits + [0x5A]), text)
        }
    }

    private mutating func anything() -> [UInt8] {
        let count = sentence.choices.once(in: 8) ? sentence.choices.below(400) : sentence.choices.below(20)
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: sentence.choices.below(256)) }
    }

    /// Now and then with more bytes of length than it takes, which BER allows.
    private mutating func written(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        let isLong = sentence.choices.once(in: 16)
        if count < 128, !isLong { return [tag, UInt8(count)] + content }
        if count < 256, !isLong { return [tag, 0x81, UInt8(count)] + content }
        return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + content
    }

    func check() throws(Violation) {
        let dates = CertificateDates(sentence.bytes)
        try require(dates == expected, "\(String(describing: dates)), not \(String(describing: expected))")
    }
}
