// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// Base64 (RFC 4648), written bit by bit.
struct Base64Language: Language {
    static let name = "base64"
    static let target = "values"

    var sentence = Sentence()
    private var expected: [UInt8] = []
    private var isBroken = false
    private var isPlain = false

    mutating func write() {
        sentence.put("b")
        expected.removeAll(keepingCapacity: true)
        for _ in 0..<sentence.choices.below(sentence.choices.once(in: 16) ? 100 : 24) {
            expected.append(UInt8(truncatingIfNeeded: sentence.choices.below(256)))
        }
        isBroken = sentence.choices.once(in: 4)
        isPlain = !isBroken && sentence.choices.flip()
        let (isURL, isPadded) = isPlain ? (false, true) : (sentence.choices.flip(), sentence.choices.flip())
        let fault = isBroken ? sentence.choices.below(expected.count + 1) : -1
        var (bits, count) = (0, 0)
        for (index, byte) in expected.enumerated() {
            if index == fault { sentence.put(sentence.choices.pick(Self.broken)) }
            bits = bits << 8 | Int(byte)
            count += 8
            while count >= 6 {
                count -= 6
                putDigit(bits >> count & 63, isURL)
            }
            bits &= 63
        }
        if count > 0 { putDigit(bits << (6 - count) & 63, isURL) }
        if isPadded { for _ in 0..<(3 - expected.count % 3) % 3 { sentence.put("=") } }
        if fault == expected.count { sentence.put(sentence.choices.pick(Self.broken)) }
    }

    private mutating func putDigit(_ digit: Int, _ isURL: Bool) {
        sentence.put((isURL ? Self.urlDigits : Self.digits)[digit])
    }

    func check() throws(Violation) {
        let text = String(decoding: sentence.bytes.dropFirst(), as: UTF8.self)
        let found = Base64.decode(text)
        if isBroken { return try require(found == nil, "what is no base64 is read as \(found ?? [])") }
        try require(found == expected, "\(text) is read as something else")
        if isPlain { try require(Base64.encode(expected) == text, "it is written otherwise than \(text)") }
    }

    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlDigits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let broken: [StaticString] = [" ", "\n", "*", ".", "\u{E9}", "\0", "===", "====", "=====A", "%3D"]
}
