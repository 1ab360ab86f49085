// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading

/// Configurations in YAML: two ways to write the same are the same settings, and what breaks a rule is refused.
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
        // A credential's field that the environment has is nobody's to tell.
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
