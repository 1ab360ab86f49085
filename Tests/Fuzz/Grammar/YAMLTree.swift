// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A tree of YAML, and the many ways to write it.
indirect enum YAMLTree {
    case text(String)
    case list([YAMLTree])
    case map([(key: String, value: YAMLTree)])
    /// A map whose order counts.
    case ordered([(key: String, value: YAMLTree)])

    /// Writes the tree in blocks, with what is inside in braces and brackets now and then, quoted or not, with comments or without.
    func write(_ sentence: inout Sentence, indent: Int = 0) {
        switch self {
        case .text: writeFlow(&sentence)
        case .list(let elements):
            for element in elements {
                Self.writeIndent(&sentence, indent)
                sentence.put("- ")
                if case .text = element {
                } else if !sentence.choices.flip() {
                    sentence.put("\n")
                    element.write(&sentence, indent: indent + 2)
                    continue
                }
                element.writeFlow(&sentence)
                Self.writeEnd(&sentence)
            }
        case .map(let members), .ordered(let members):
            let first = isOrdered ? 0 : sentence.choices.below(max(members.count, 1))
            for index in members.indices {
                let (key, value) = members[(index + first) % members.count]
                Self.writeIndent(&sentence, indent)
                Self.write(key, &sentence)
                sentence.put(":")
                if case .text = value {
                } else if !sentence.choices.once(in: 3), !value.isEmpty {
                    if sentence.choices.once(in: 6) { sentence.put(" # of blocks") }
                    sentence.put("\n")
                    value.write(&sentence, indent: indent + 1 + sentence.choices.below(4))
                    continue
                }
                sentence.put(" ")
                value.writeFlow(&sentence)
                Self.writeEnd(&sentence)
            }
        }
    }

    private var isEmpty: Bool {
        switch self {
        case .text: false
        case .list(let elements): elements.isEmpty
        case .map(let members), .ordered(let members): members.isEmpty
        }
    }

    private var isOrdered: Bool { if case .ordered = self { true } else { false } }

    private func writeFlow(_ sentence: inout Sentence) {
        switch self {
        case .text(let text): Self.write(text, &sentence)
        case .list(let elements):
            sentence.put("[")
            for (index, element) in elements.enumerated() {
                if index > 0 { sentence.put(sentence.choices.flip() ? ", " : " ,\n          ") }
                element.writeFlow(&sentence)
            }
            sentence.put("]")
        case .map(let members), .ordered(let members):
            sentence.put("{ ")
            for (index, member) in members.enumerated() {
                if index > 0 { sentence.put(", ") }
                Self.write(member.key, &sentence)
                sentence.put(": ")
                member.value.writeFlow(&sentence)
            }
            sentence.put(" }")
        }
    }

    private static func writeIndent(_ sentence: inout Sentence, _ indent: Int) {
        if sentence.choices.once(in: 16) { sentence.put("# a comment: [of, no, effect\n") }
        for _ in 0..<indent { sentence.put(" ") }
    }

    private static func writeEnd(_ sentence: inout Sentence) {
        if sentence.choices.once(in: 8) { sentence.put("   # until the end") }
        sentence.put(sentence.choices.once(in: 8) ? "\n\n" : "\n")
    }

    private static func write(_ text: String, _ sentence: inout Sentence) {
        let isPlain = text.utf8.allSatisfy { $0 >= 0x61 && $0 <= 0x7A || $0 == 0x2D } && !text.isEmpty
        switch sentence.choices.below(isPlain ? 4 : 2) {
        case 0:
            sentence.put("\"")
            for scalar in text.unicodeScalars {
                if scalar == "\"" || scalar == "\\" { sentence.put("\\") }
                if sentence.choices.once(in: 24), scalar.value < 0x80 {
                    sentence.put("\\x")
                    if scalar.value < 16 { sentence.put("0") }
                    sentence.put(UInt64(scalar.value), radix: 16)
                    continue
                }
                sentence.put(String(scalar))
            }
            sentence.put("\"")
        case 1:
            sentence.put("'")
            sentence.put(text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''"))
            sentence.put("'")
        default: sentence.put(text)
        }
    }
}
