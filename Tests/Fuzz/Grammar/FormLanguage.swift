// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets

/// Forms and queries (WHATWG URL §5.1), each character in one of its spellings.
struct FormLanguage: Language {
    static let name = "forms"
    static let target = "values"
    static let period: UInt64 = 32

    var sentence = Sentence()
    private var pairs: [(name: [UInt8], value: [UInt8])] = []

    mutating func write() {
        sentence.put("f")
        pairs.removeAll(keepingCapacity: true)
        for index in 0..<sentence.choices.below(4) {
            if index > 0 { sentence.put(sentence.choices.once(in: 8) ? "&&" : "&") }
            var pair: (name: [UInt8], value: [UInt8]) = (put(), [])
            if sentence.choices.once(in: 8) {
                // A name without an equals sign, which means nothing if it is empty.
                if pair.name.isEmpty { continue }
            } else {
                sentence.put("=")
                pair.value = put()
            }
            pairs.append(pair)
        }
    }

    private mutating func put() -> [UInt8] {
        var text: [UInt8] = []
        for _ in 0..<sentence.choices.below(6) {
            let sign = sentence.choices.pick(Self.signs)
            text += Array("\(sign)".utf8)
            for byte in "\(sign)".utf8 {
                if byte == 0x20, sentence.choices.flip() {
                    sentence.put("+")
                } else if "&=+% ".utf8.contains(byte) || byte >= 0x80 || sentence.choices.once(in: 6) {
                    sentence.put("%")
                    if byte < 16 { sentence.put("0") }
                    sentence.put(UInt64(byte), radix: 16, isUpper: sentence.choices.flip())
                } else {
                    sentence.put(byte)
                }
            }
        }
        return text
    }

    func check() throws(Violation) {
        let text = String(decoding: sentence.bytes.dropFirst(), as: UTF8.self)
        for pair in pairs {
            let first = pairs.first { $0.name == pair.name }
            let name = String(decoding: pair.name, as: UTF8.self)
            let found = FormEncoding.value(of: name, in: text).map { Array($0.utf8) }
            try require(found == first?.value, "\(name) is \(String(describing: found)) in \(text)")
        }
        try require(FormEncoding.value(of: "nobody", in: text) == nil, "a value of a name that is not there")
        let written = FormEncoding.body(
            pairs.map { (name: String(decoding: $0.name, as: UTF8.self), value: Secret($0.value)) })
        let body = String(decoding: written.revealBytes(), as: UTF8.self)
        for pair in pairs {
            let name = String(decoding: pair.name, as: UTF8.self)
            try require(
                FormEncoding.value(of: name, in: body) == FormEncoding.value(of: name, in: text),
                "written, \(name) is another")
        }
    }

    private static let signs: [StaticString] = [
        "a", "b", "=", "&", "+", "%", " ", "\u{E9}", "\u{1F600}", "\0", "\r\n", "code", "/?#", "%41", "~", ";",
    ]
}

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
