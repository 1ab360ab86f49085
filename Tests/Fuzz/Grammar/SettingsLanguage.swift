// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading

/// Configurations in YAML: two spellings of one configuration give equal settings, and a broken rule is refused.
struct SettingsLanguage: Language {
    static let name = "settings"
    static let period: UInt64 = 8

    var sentence = Sentence()
    private var tree = YAMLTree.text("")
    private var isBroken = false

    mutating func write() {
        isBroken = sentence.choices.once(in: 3)
        let fault = isBroken ? sentence.choices.below(8) : -1
        var upstreams: [(key: String, value: YAMLTree)] = []
        for index in 0...sentence.choices.below(2) {
            upstreams.append(("u\(index)", upstream(fault: index == 0 ? fault : -1)))
        }
        var listeners: [YAMLTree] = []
        for index in 0...sentence.choices.below(2) {
            var members: [(key: String, value: YAMLTree)] = [
                ("address", .text(sentence.choices.flip() ? "127.0.0.1:\(8_000 + index)" : "[::1]:\(8_000 + index)")),
                ("upstream", .text(fault == 3 ? "nobody" : "u0")),
            ]
            if sentence.choices.once(in: 3) {
                members.append(("hosts", .list([.text("a.localhost"), .text("b.example")])))
            }
            if sentence.choices.once(in: 3) {
                members.append(
                    (
                        "routes",
                        .list([
                            .map([
                                ("path", .text("/a/")), ("methods", .list([.text("GET")])), ("upstream", .text("u0")),
                            ])
                        ])
                    ))
            }
            listeners.append(.map(members))
        }
        var sections: [(key: String, value: YAMLTree)] = [
            ("listeners", .list(listeners)), ("upstreams", .ordered(upstreams)),
        ]
        if sentence.choices.flip() { sections.append(("challenges", .list([challenge(fault: fault)]))) }
        if sentence.choices.once(in: 3) {
            sections.append(("limits", .map([("callers", .text("\(1 + sentence.choices.below(1_024))"))])))
        }
        if fault == 4 { sections.append(("bogus", .text("x"))) }
        if fault == 5 { sections.append(sections[0]) }
        tree = .map(sections)
        tree.write(&sentence)
        if fault == 6 { sentence.put(sentence.choices.pick(Self.broken)) }
        if fault == 7, sections.count < 3 { sentence.put("challenges: []\nchallenges: []\n") }
        if fault == 7, sections.count >= 3 { sentence.put("listeners: 1\n") }
    }

    private mutating func upstream(fault: Int) -> YAMLTree {
        var members: [(key: String, value: YAMLTree)] = []
        if fault != 0 { members.append(("url", .text(sentence.choices.pick(Self.addresses)))) }
        if sentence.choices.flip() || fault == 1 {
            members.append(
                (
                    "timeouts",
                    .map([("connect", .text(fault == 1 ? "5 parsecs" : "\(1 + sentence.choices.below(60))s"))])
                ))
        }
        if sentence.choices.once(in: 3) || fault == 2 {
            members.append(
                ("replay", .map([("memory", fault == 2 ? .list([]) : .text("\(1 + sentence.choices.below(64))KiB"))])))
        }
        return .map(members)
    }

    private mutating func challenge(fault: Int) -> YAMLTree {
        .map([
            ("name", .text("c")), ("upstream", .text("u0")),
            ("scheme", .text(sentence.choices.flip() ? "basic" : "digest")),
            ("credential", .text("account")),
        ])
    }

    mutating func check() throws(Violation) {
        let first = Settings.parse(sentence.bytes, file: "f", environment: Self.environment)
        // The secret of a credential in the environment must not appear in a problem.
        for problem in first.problems {
            let told = MarkedSecret.coding(in: Array(problem.description.utf8))
            try require(told == nil, "the secret is told as \(told ?? "")")
        }
        if isBroken { return try require(first.settings == nil, "broken settings are taken: \(tree)") }
        try require(first.settings != nil, "settings are refused: \(first.problems)")
        var other = Sentence()
        other.begin(sentence.choices.word())
        tree.write(&other)
        let second = Settings.parse(other.bytes, file: "f", environment: Self.environment)
        try require(
            second.settings == first.settings,
            "written otherwise it has \(second.problems): \(String(decoding: other.bytes, as: UTF8.self))")
        guard sentence.choices.once(in: 8) else { return }
        let lines = EffectiveReport(sentence.bytes, file: "f", environment: Self.environment).lines ?? []
        let told = MarkedSecret.coding(in: Array(lines.joined(separator: "\n").utf8))
        try require(told == nil, "the secret is told as \(told ?? "")")
    }

    private static let environment = ["COUNTERSIGN_ACCOUNT__PASSWORD": MarkedSecret.text]

    private static let addresses = ["https://a.example/", "http://127.0.0.1:9/x", "https://[::1]:8443/a/b/"]
    private static let broken: [StaticString] = [
        "\tx: y\n", "x: [\n", "x: {a\n", "\"x: y\n", "x: y: z\n", "- a\n", "x: &a b\ny: *c\n", "x: !!binary \u{E9}\n",
        "x: %\n", "x: @a\n", "? [a]: b\n", "\0\n", "x: 'a\n",
        "\u{7F}: a\n", "--- \nx: y\n", "x: y\n", "x\n",
    ]
}

/// A tree of YAML, and the many ways to write it.
indirect enum YAMLTree {
    case text(String)
    case list([YAMLTree])
    case map([(key: String, value: YAMLTree)])
    /// A map whose order counts.
    case ordered([(key: String, value: YAMLTree)])

    /// Writes the tree in blocks; parts of it in braces and brackets now and then, quoted or not, with comments or
    /// without.
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
