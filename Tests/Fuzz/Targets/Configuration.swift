// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import SettingsReading

@testable import Settings

/// A configuration.
func fuzzSettings(_ input: Span<UInt8>) throws(Violation) {
    let bytes = input.array
    let (settings, problems) = Settings.parse(bytes, file: "f", environment: ["PORT": "8080", "NAME": "bank"])
    let errors = problems.filter { $0.severity == .error }
    try require((settings == nil) == !errors.isEmpty, "\(errors.count) errors, and settings: \(settings != nil)")
    // One line more than there are: an omission at the end is reported after it.
    let lines = String(decoding: bytes, as: UTF8.self).unicodeScalars.count { isLineEnd($0) } + 2
    var last = Mark(line: 1, column: 1)
    for problem in problems {
        guard let mark = problem.mark else { throw Violation(description: "a problem without a place: \(problem)") }
        try require(
            (1...lines).contains(mark.line) && (1...bytes.count + 2).contains(mark.column), "no such place: \(problem)")
        try require(last <= mark, "not in the order of the file: \(problem)")
        last = mark
        try require(!problem.message.isEmpty, "a problem without a message")
        // Each problem is reported as one line.
        let isPlain = problem.description.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 }
        try require(isPlain, "a problem of two lines: \(problem)")
    }
    if let settings { try checkEffective(bytes, settings) }
}

/// The effective configuration means the same, and is its own.
private func checkEffective(_ bytes: [UInt8], _ settings: Settings) throws(Violation) {
    let environment = ["PORT": "8080", "NAME": "bank"]
    guard let lines = EffectiveReport(bytes, file: "f", environment: environment).lines else {
        throw Violation(description: "settings without an effective configuration")
    }
    let text = Array(lines.joined(separator: "\n").utf8)
    let again = Settings.parse(text, file: "f", environment: environment)
    try require(again.settings == settings, "other settings by the effective configuration: \(again.problems)")
    try require(
        EffectiveReport(text, file: "f", environment: environment).lines == lines,
        "the effective configuration has another one")
}

/// YAML 1.1 section 4.2, as libyaml counts lines.
private func isLineEnd(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x0A, 0x0D, 0x85, 0x2028, 0x2029: true
    default: false
    }
}

/// The dates of certificates: the input as one in DER, and as a PEM file; then one written with dates from the input.
func fuzzCertificates(_ input: Span<UInt8>) throws(Violation) {
    let bytes = input.array
    if let dates = CertificateDates(bytes) {
        try check(dates)
        try require(dates == DEROracle.dates(bytes), "other dates than \(dates)")
    } else {
        try require(DEROracle.dates(bytes) == nil, "a certificate is not read")
    }
    for dates in CertificateDates.all(inPEM: input.string) { if let dates { try check(dates) } }
    var dice = Dice(input)
    let written = DEROracle.certificate(with: bytes, &dice)
    try require(CertificateDates(written.bytes) == written.dates, "\(written.dates) is read otherwise")
}

private func check(_ dates: CertificateDates) throws(Violation) {
    for date in [dates.begin, dates.end] {
        try require(date.utf8.count == 14 && date.utf8.allSatisfy { (0x30...0x39).contains($0) }, "the date \(date)")
        let day = CertificateDates.day(date)
        try require(day.utf8.count == 10 && day.filter { $0 == "-" }.count == 2, "the day \(day)")
    }
}

/// A second reader of DER (X.690 section 8.1): values with their contents, found by a path of numbers.
private enum DEROracle {
    struct Value {
        var tag: Int
        var content: [UInt8]
    }

    /// Returns the values in `bytes` as far as they can be read.
    static func values(_ bytes: [UInt8]) -> [Value] {
        var values: [Value] = []
        var index = 0
        while index + 1 < bytes.count {
            let tag = Int(bytes[index])
            if tag % 32 == 31 { break }
            var length = Int(bytes[index + 1])
            index += 2
            if length >= 128 {
                let digits = length - 128
                guard digits > 0, digits <= 3, index + digits <= bytes.count else { break }
                length = bytes[index..<index + digits].reduce(0) { $0 * 256 + Int($1) }
                index += digits
            }
            guard index + length <= bytes.count else { break }
            values.append(Value(tag: tag, content: Array(bytes[index..<index + length])))
            index += length
        }
        return values
    }

    /// RFC 5280 §4.1: of `tbsCertificate`, after the version, the number, the algorithm and the issuer.
    static func dates(_ bytes: [UInt8]) -> CertificateDates? {
        guard let whole = values(bytes).first, whole.tag == 0x30, let signed = values(whole.content).first,
            signed.tag == 0x30
        else { return nil }
        var fields = values(signed.content)
        if fields.first?.tag == 0xA0 { fields.removeFirst() }
        guard fields.count >= 4, fields[0].tag == 2, fields[3].tag == 0x30 else { return nil }
        let dates = values(fields[3].content)
        guard dates.count >= 2, let begin = date(dates[0]), let end = date(dates[1]) else { return nil }
        return CertificateDates(begin: begin, end: end)
    }

    private static func date(_ value: Value) -> String? {
        guard value.content.last == UInt8(ascii: "Z") else { return nil }
        let digits = value.content.dropLast()
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let text = String(decoding: digits, as: UTF8.self)
        if value.tag == 0x17, digits.count == 12 { return (digits[0] >= 0x35 ? "19" : "20") + text }
        return value.tag == 0x18 && digits.count == 14 ? text : nil
    }

    /// Returns a certificate whose other fields are `filling`.
    static func certificate(with filling: [UInt8], _ dice: inout Dice) -> (bytes: [UInt8], dates: CertificateDates) {
        func digits(_ count: Int) -> String { String((0..<count).map { _ in Character("\(dice.below(10))") }) }
        let (short, long) = (digits(12), digits(14))
        let begin = (short >= "5" ? "19" : "20") + short
        let validity = written(0x17, Array("\(short)Z".utf8)) + written(0x18, Array("\(long)Z".utf8))
        let version = dice.flip() ? written(0xA0, written(2, [2])) : []
        let fields =
            version + written(2, filling) + written(0x30, filling) + written(0x30, filling) + written(0x30, validity)
            + written(0x30, filling)
        let bytes = written(0x30, written(0x30, fields) + written(0x30, []) + written(3, filling))
        return (bytes, CertificateDates(begin: begin, end: long))
    }

    private static func written(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        if count < 128 { return [tag, UInt8(count)] + content }
        if count < 256 { return [tag, 0x81, UInt8(count)] + content }
        if count < 65_536 { return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + content }
        return [tag, 0x83, UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)] + content
    }
}
