// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

@testable import ChallengeHandling

/// Structured fields (RFC 8941 §3): lists, whose members are items and inner lists with parameters.
struct StructuredLanguage: Language {
    static let name = "structured"
    static let target = "challenges"

    var sentence = Sentence()
    private var list: [StructuredMember] = []
    private var isBroken = false

    mutating func write() {
        sentence.put("a")
        list.removeAll(keepingCapacity: true)
        isBroken = sentence.choices.once(in: 4)
        let count = 1 + sentence.choices.below(3)
        let broken = isBroken ? sentence.choices.below(count) : -1
        for index in 0..<count {
            if index > 0 { sentence.put(sentence.choices.pick(Self.commas)) }
            if index == broken { sentence.put(sentence.choices.pick(Self.broken)) } else { list.append(putMember()) }
        }
        if sentence.choices.once(in: 8) { sentence.put(" ") }
    }

    private mutating func putMember() -> StructuredMember {
        guard sentence.choices.once(in: 4) else { return .item(putItem()) }
        sentence.put("(")
        var items: [StructuredItem] = []
        for index in 0..<sentence.choices.below(4) {
            if index > 0 || sentence.choices.once(in: 8) { sentence.put(sentence.choices.once(in: 8) ? "  " : " ") }
            items.append(putItem())
        }
        if sentence.choices.once(in: 8) { sentence.put(" ") }
        sentence.put(")")
        return .innerList(items, putParameters())
    }

    private mutating func putItem() -> StructuredItem {
        let value = putValue()
        return StructuredItem(value, putParameters())
    }

    private mutating func putParameters() -> StructuredParameters {
        var parameters = StructuredParameters()
        guard sentence.choices.once(in: 3) else { return parameters }
        for _ in 0...sentence.choices.below(3) {
            sentence.put(";")
            if sentence.choices.once(in: 8) { sentence.put(" ") }
            let key = sentence.choices.pick(Self.keys)
            sentence.put(key)
            if sentence.choices.once(in: 3) {
                parameters["\(key)"] = .boolean(true)
            } else {
                sentence.put("=")
                parameters["\(key)"] = putValue()
            }
        }
        return parameters
    }

    private mutating func putValue() -> StructuredValue {
        switch sentence.choices.below(6) {
        case 0:
            let isTrue = sentence.choices.flip()
            sentence.put(isTrue ? "?1" : "?0")
            return .boolean(isTrue)
        case 1:
            let number = Int64(sentence.choices.number() % 1_000_000_000_000_000)
            let isNegative = sentence.choices.once(in: 3)
            if isNegative { sentence.put("-") }
            sentence.put(UInt64(number))
            return .integer(isNegative ? -number : number)
        case 2:
            let whole = Int64(sentence.choices.number() % 1_000_000_000_000)
            let isNegative = sentence.choices.once(in: 3)
            if isNegative { sentence.put("-") }
            sentence.put(UInt64(whole))
            let (text, thousandths) = sentence.choices.pick(Self.fractions)
            sentence.put(text)
            let value = whole * 1_000 + thousandths
            return .decimal(isNegative ? -value : value)
        case 3:
            let (text, value) = sentence.choices.pick(Self.strings)
            sentence.put(text)
            return .string(value)
        case 4:
            let (text, value) = sentence.choices.pick(Self.byteSequences)
            sentence.put(text)
            return .bytes(Array(value.utf8))
        default:
            let token = sentence.choices.pick(Self.tokens)
            sentence.put(token)
            return .token("\(token)")
        }
    }

    func check() throws(Violation) {
        let found = StructuredFieldParser.list(Array(sentence.bytes.dropFirst()))
        if isBroken { return try require(found == nil, "a broken list is read as \(String(describing: found))") }
        try require(found == list, "\(String(describing: found)), not \(list)")
        let written = Array(StructuredFieldWriter.text(of: list).utf8)
        try require(StructuredFieldParser.list(written) == list, "written, \(list) is another")
    }

    private static let commas: [StaticString] = [",", ", ", " ,", "\t,\t", " , "]
    private static let keys: [StaticString] = ["a", "created", "keyid", "*x", "a_b-c.d*e", "sf", "z9"]
    private static let fractions: [(StaticString, Int64)] = [
        (".0", 0), (".5", 500), (".25", 250), (".125", 125), (".001", 1), (".999", 999), (".10", 100),
    ]
    private static let strings: [(StaticString, String)] = [
        (#""""#, ""), (#""a""#, "a"), (#""@method""#, "@method"), (#""\"\\""#, #""\"#),
        (#""a, b;c=(d)""#, "a, b;c=(d)"), (#""content-digest""#, "content-digest"), (#""~ !""#, "~ !"),
    ]
    private static let byteSequences: [(StaticString, String)] = [
        ("::", ""), (":YQ==:", "a"), (":YWI=:", "ab"), (":YWJj:", "abc"), (":YQ:", "a"),
    ]
    private static let tokens: [StaticString] = ["a", "*", "text/html", "A:b", "x!#$%&'*+-.^_`|~", "sha-256"]
    private static let broken: [StaticString] = [
        "?2", "?", "-", "1.", "1.2345", "1234567890123456", "1234567890123.0", "--1", "+1", "\"a", "\"\\a\"",
        "\"\u{E9}\"", "\"\t\"", ":a", ":*:", ":YQ=:", "(", "(a", "(a,b)", "a b", "a;",
        "a;A", "a;1", "a;b=", "a; ;b", "a;=1", "a=b", "(a)b", "((a))", "a;b=(c)", "\u{E9}", "@a", "a;b =1", "(a\tb)",
        "1a", "1.a", "\"a\"b", "a;b= 1", ")", "a)", "'a'", ".5", "a;b;",
    ]
}
