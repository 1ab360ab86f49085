// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// JSON texts (RFC 8259).
struct JSONLanguage: Language {
    static let name = "json"
    static let target = "values"

    var sentence = Sentence()
    private var expected = JSONValue.null
    private var isBroken = false

    mutating func write() {
        sentence.put("j")
        isBroken = false
        if sentence.choices.once(in: 64) { return writeDeep() }
        let mayBreak = sentence.choices.once(in: 3)
        putSpace()
        expected = put(depth: 0, mayBreak: mayBreak)
        putSpace()
        if mayBreak, !isBroken, sentence.choices.once(in: 4) {
            sentence.put(sentence.choices.pick(Self.ends))
            isBroken = true
        }
    }

    /// Lists in lists, up to the deepest that is taken and one more.
    private mutating func writeDeep() {
        let depth = 30 + sentence.choices.below(5)
        for _ in 0..<depth { sentence.put("[") }
        for _ in 0..<depth { sentence.put("]") }
        isBroken = depth > JSONLimits.outside.depth
        expected = .array([])
        for _ in 1..<depth { expected = .array([expected]) }
    }

    private mutating func put(depth: Int, mayBreak: Bool) -> JSONValue {
        if mayBreak, !isBroken, sentence.choices.once(in: 8) {
            isBroken = true
            sentence.put(sentence.choices.pick(Self.broken))
            return .null
        }
        switch sentence.choices.below(depth > 3 ? 5 : 8) {
        case 0:
            sentence.put("null")
            return .null
        case 1:
            let isTrue = sentence.choices.flip()
            sentence.put(isTrue ? "true" : "false")
            return .bool(isTrue)
        case 2: return putNumber()
        case 3, 4: return .string(putString())
        case 5:
            var values: [JSONValue] = []
            sentence.put("[")
            for index in 0..<sentence.choices.below(4) {
                if index > 0 { sentence.put(",") }
                putSpace()
                values.append(put(depth: depth + 1, mayBreak: mayBreak))
                putSpace()
            }
            sentence.put("]")
            return .array(values)
        default:
            var members: [String: JSONValue] = [:]
            sentence.put("{")
            for index in 0..<sentence.choices.below(4) {
                if index > 0 { sentence.put(",") }
                putSpace()
                let name = putString()
                putSpace()
                sentence.put(":")
                putSpace()
                let value = put(depth: depth + 1, mayBreak: mayBreak)
                // An object with one name twice could be understood in two ways.
                if members.updateValue(value, forKey: name) != nil { isBroken = true }
                putSpace()
            }
            sentence.put("}")
            return .object(members)
        }
    }

    private mutating func putNumber() -> JSONValue {
        let isNegative = sentence.choices.once(in: 4)
        let number = sentence.choices.number()
        if isNegative { sentence.put("-") }
        if sentence.choices.once(in: 4), number < 1 << 50 {
            sentence.put(number)
            let fraction = sentence.choices.below(4)
            sentence.put([".0", ".5", ".25e0", "E0"][fraction])
            let value = (Double(number) + [0, 0.5, 0.25, 0][fraction]) * (isNegative ? -1 : 1)
            return Int64(exactly: value).map { .integer($0) } ?? .double(value)
        }
        sentence.put(number)
        let text = isNegative ? "-\(number)" : "\(number)"
        if let whole = Int64(text) { return .integer(whole) }
        let value = isNegative ? -Double(number) : Double(number)
        return Int64(exactly: value).map { .integer($0) } ?? .double(value)
    }

    private mutating func putString() -> String {
        sentence.put("\"")
        var text = ""
        for _ in 0..<sentence.choices.below(5) {
            let index = sentence.choices.below(Self.written.count)
            sentence.put(Self.written[index].0)
            text += Self.written[index].1
        }
        sentence.put("\"")
        return text
    }

    private mutating func putSpace() {
        guard sentence.choices.once(in: 6) else { return }
        for _ in 0...sentence.choices.below(3) { sentence.put([0x20, 0x0A, 0x0D, 0x09][sentence.choices.below(4)]) }
    }

    func check() throws(Violation) {
        let bytes = Array(sentence.bytes.dropFirst())
        let found = JSONValue(parsing: bytes)
        if isBroken { return try require(found == nil, "what is no JSON is read as \(String(describing: found))") }
        try require(found == expected, "\(String(describing: found)), not \(expected)")
        guard seedIsForWriting else { return }
        try require(JSONValue(parsing: expected.serialized()) == expected, "written, \(expected) is another")
    }

    /// The writer is the standard library's, and slow.
    private var seedIsForWriting: Bool { sentence.count % 16 == 0 }

    private static let written: [(StaticString, String)] = [
        ("a", "a"), ("b c", "b c"), ("\\n", "\n"), ("\\\"", "\""), ("\\\\", "\\"), ("\\/", "/"), ("/", "/"),
        ("\\u0041", "A"), ("\\u00e9", "\u{E9}"),
        ("\\uD83D\\uDE00", "\u{1F600}"), ("\u{1F600}", "\u{1F600}"), ("\\u0000", "\0"),
        ("\\b\\f\\r\\t", "\u{8}\u{C}\r\t"), ("\u{7F}", "\u{7F}"),
        ("{}[],:", "{}[],:"), ("expires_in", "expires_in"), ("\\uFFFF", "\u{FFFF}"),
    ]
    private static let ends: [StaticString] = ["x", "}", "]", ",", " 1", "\"", "null", "\0", "//", "\u{A0}"]
    private static let broken: [StaticString] = [
        "nul", "True", "NaN", "Infinity", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x1", "1_0", "1e999",
        "-1e999", "'a'", "\"", "\"a",
        "\"\\x\"", "\"\\u12\"", "\"\\u00g0\"", "\"\\uD800\"", "\"\\uD800\\u0041\"", "\"\\uDC00\"", "\"\n\"", "\"\t\"",
        "\"\0\"", "[1,]", "[,1]", "[1 2]",
        "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}", "{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":2}",
        "[", "{", "{\"a\":1", "[1", "/**/1",
        "{\"a\" 1}", "{\"a\":1 \"b\":2}", "\"\\", "nullnull", "--1", "1-", "\u{661}",
    ]
}
