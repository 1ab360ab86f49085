// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The numbers of callers, servers and files at the ends of their ranges, in each of their spellings. The target knows
/// their valid results.
struct NumberLanguage: Language {
    static let name = "numbers"
    static let period: UInt64 = 1

    var sentence = Sentence()

    mutating func write() {
        let kind = sentence.choices.pick(Self.kinds)
        sentence.put(kind)
        switch kind {
        case UInt8(ascii: "a"):
            sentence.put(sentence.choices.pick(Self.weights))
        case UInt8(ascii: "h"):
            sentence.put(sentence.choices.pick(Self.admin))
            putNumber()
            sentence.put(" HTTP/1.1\r\nHost: a\r\n\r\n")
        case UInt8(ascii: "x"):
            sentence.put("Wed, ")
            putNumber()
            sentence.put("-Oct-")
            putNumber()
            sentence.put(" 07:28:00 GMT")
        case UInt8(ascii: "d"), UInt8(ascii: "s"):
            putNumber()
            sentence.put(sentence.choices.pick(Self.units))
        case UInt8(ascii: "t"):
            for index in 0..<3 {
                if index > 0 { sentence.put(" ") }
                putNumber()
            }
        default: putNumber()
        }
    }

    private mutating func putNumber() {
        switch sentence.choices.below(12) {
        case 0: sentence.put("-")
        case 1: sentence.put("+")
        default: break
        }
        sentence.put(sentence.choices.number(), zeros: sentence.choices.once(in: 12) ? sentence.choices.below(30) : 0)
        switch sentence.choices.below(16) {
        case 0: sentence.put(".5")
        case 1:
            sentence.put("e")
            sentence.put(UInt64(sentence.choices.below(400)))
        case 2: sentence.put("0000000000")
        default: break
        }
    }

    func check() {}

    private static let kinds = Array("ahrmxecdst".utf8)
    private static let weights: [StaticString] = [
        "0", "1", "0.5", "0.500", "0.501", "0.499", "1.000", "1.001", "0.", "1.", ".5", "0.5000", "2", "-1", "0.5e1",
        "00", "01", "1.0000", "0,5", "",
        "0.050", "0.9", "0.009", "0x1", "\u{661}", "inf", "NaN",
    ]
    private static let admin: [StaticString] = [
        "POST /unlatch?challenge=", "GET /metrics?x=", "GET /readyz?exclude=", "POST /drain?seconds=", "GET /",
        "DELETE /sessions?challenge=",
        "POST /challenges/c/unlatch?key=", "GET /healthz?verbose&exclude=",
    ]
    private static let units: [StaticString] = [
        "s", "ms", "m", "h", "d", "KiB", "MiB", "GiB", "TiB", "", "S", "kb", "PiB", " s", "us", "y",
    ]
}

/// Events of one exchange, as the choices of its peers: runs of one event, two that alternate, and any. The target
/// knows which sequences are valid.
struct ExchangeLanguage: Language {
    static let name = "exchanges"
    static let period: UInt64 = 1

    var sentence = Sentence()

    mutating func write() {
        for _ in 0...sentence.choices.below(6) {
            let (one, other) = (UInt8(sentence.choices.below(256)), UInt8(sentence.choices.below(12)))
            let count = 1 + sentence.choices.below(16)
            switch sentence.choices.below(3) {
            case 0: for _ in 0..<count { sentence.put(one) }
            case 1: for index in 0..<count { sentence.put(index % 2 == 0 ? one : other) }
            default:
                for _ in 0..<count { sentence.put(UInt8(sentence.choices.below(sentence.choices.flip() ? 12 : 256))) }
            }
        }
    }

    func check() {}
}
