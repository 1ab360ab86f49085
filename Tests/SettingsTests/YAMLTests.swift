// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SettingsReading
import Testing

@testable import Settings

@Suite("YAML with positions")
struct YAMLTests {
    @Test("keys and values know their line and column, in characters")
    func marks() throws {
        let (root, _) = try YAMLComposer.compose(Array("# head\né: [1, 'x']\nb:\n  c: |\n    text\n".utf8))
        let expected = YAMLNode(
            content: .mapping(
                [
                    .init(
                        key: "é", keyMark: Mark(line: 2, column: 1),
                        value: YAMLNode(
                            content: .sequence([
                                YAMLNode(content: .scalar("1", isPlain: true), mark: Mark(line: 2, column: 5)),
                                YAMLNode(content: .scalar("x", isPlain: false), mark: Mark(line: 2, column: 8)),
                            ]), mark: Mark(line: 2, column: 4))),
                    .init(
                        key: "b", keyMark: Mark(line: 3, column: 1),
                        value: YAMLNode(
                            content: .mapping(
                                [
                                    .init(
                                        key: "c", keyMark: Mark(line: 4, column: 3),
                                        value: YAMLNode(
                                            content: .scalar("text\n", isPlain: false), mark: Mark(line: 4, column: 6)))
                                ], isFlow: false), mark: Mark(line: 4, column: 3))),
                ], isFlow: false), mark: Mark(line: 2, column: 1))
        #expect(root == expected)
    }

    @Test(
        "YAML that is not supported is reported with its position",
        arguments: [
            ("", 1, 1, "the file contains no settings"), ("# only a comment\n", 1, 1, "the file contains no settings"),
            ("a: &x 1\n", 1, 4, "anchors are not allowed"),
            ("a: 1\nb: *x\n", 2, 4, "aliases are not allowed; put quotes around a value that begins with *"),
            ("a: !!str 1\n", 1, 4, "tags are not allowed"),
            ("a: 1\n---\nb: 2\n", 2, 1, "a second document begins here; the configuration must be one document"),
            ("[a]: 1\n", 1, 1, "a key must be a single value"),
            (
                "a:\n\t- b\n", 2, 1,
                "while scanning for the next token: found character that cannot start any token; this is a tab: "
                    + "indent with spaces"
            ),
            (
                "at: *.example.com\n", 1, 6,
                "while scanning an alias: did not find expected alphabetic or numeric character; put quotes around a "
                    + "value that begins with *"
            ),
            ("a: 1\n b: 2\n", 2, 3, "mapping values are not allowed in this context"),
            (
                "a: [1\n", 2, 1,
                "while parsing a flow sequence that begins at line 1, column 4: did not find expected ',' or ']'"
            ),
            ("a: \u{1}\n", 1, 4, "control characters are not allowed"),
            (String(repeating: "[", count: 100), 1, 33, "nested deeper than 32 levels"),
        ])
    func refuses(text: String, line: Int, column: Int, message: String) {
        #expect(throws: YAMLError(message: message, mark: Mark(line: line, column: column))) {
            try YAMLComposer.compose(Array(text.utf8))
        }
    }

    @Test("bytes that are not UTF-8 are reported with their position")
    func notUTF8() {
        let message = "the file is not valid UTF-8: this byte is not part of a character"
        #expect(throws: YAMLError(message: message, mark: Mark(line: 2, column: 5))) {
            try YAMLComposer.compose(Array("a: é\nb: é".utf8) + [0xE9] + Array("\nc: 1\n".utf8))
        }
        #expect(throws: YAMLError(message: message, mark: Mark(line: 1, column: 4))) {
            try YAMLComposer.compose(Array("a: ".utf8) + [0xE2, 0x82])
        }
    }

    @Test("a byte order mark at the start of a file is skipped")
    func byteOrderMark() throws {
        let (root, _) = try YAMLComposer.compose([0xEF, 0xBB, 0xBF] + Array("a: 1".utf8))
        #expect(root.mark == Mark(line: 1, column: 1))
    }

    @Test("every repeated key is reported, and the first one is used")
    func duplicateKeys() throws {
        let (root, duplicates) = try YAMLComposer.compose(Array("a: 1\nb: {c: 1, c: 2}\na: 2\na: 3\n".utf8))
        #expect(
            duplicates == [
                DuplicateKey(keyPath: "b.c", mark: Mark(line: 2, column: 11), first: Mark(line: 2, column: 5)),
                DuplicateKey(keyPath: "a", mark: Mark(line: 3, column: 1), first: Mark(line: 1, column: 1)),
                DuplicateKey(keyPath: "a", mark: Mark(line: 4, column: 1), first: Mark(line: 1, column: 1)),
            ])
        guard case .mapping(let entries, _) = root.content else {
            Issue.record("the root is a mapping")
            return
        }
        #expect(entries.map(\.key) == ["a", "b"])
        #expect(entries[0].value.content == .scalar("1", isPlain: true))
    }

    @Test("a file larger than 1 MiB is not parsed")
    func tooLarge() {
        #expect(throws: YAMLError(message: "the file is larger than 1 MiB", mark: Mark(line: 1, column: 1))) {
            try YAMLComposer.compose([UInt8](repeating: UInt8(ascii: "#"), count: 1_048_577))
        }
    }
}

@Suite("Quotes")
struct QuoteTests {
    @Test("a file with quotes around every key and value has the settings of the file without them")
    func wholeFile() throws {
        let tree = try YAMLComposer.compose(Array(everything.utf8)).root
        let quoted = quoted(tree)
        #expect(quoted.contains(#""url": "form""#) && quoted.contains(#""keep-attempts": "2""#))
        let settings = try #require(parsed(quoted), "\(problems(quoted))")
        #expect(settings == parsed(everything))
    }

    @Test(
        "quotes around a word, number or flag make no difference",
        arguments: [
            (frame("workers: "), "auto"), (frame("workers: "), "3"), (frame("audit: "), "journal"),
            (frame("limits: { callers: 4, head: "), "8KiB"), (frame("limits: { callers: "), "7"),
            (frame("log: { format: "), "auto"), (frame(upstream: "proxy: none, http: 2", "workers: "), "auto"),
            (frame("challenges:\n  - { name: c, upstream: u, inject: { A: b }, retry-rejected: "), "never"),
            (frame("challenges:\n  - { name: c, upstream: u, inject: { A: b }, retry-rejected: "), "30m"),
            (frame("challenges:\n  - { name: c, upstream: u, credential: x, gateway: webseal, login: { url: "), "form"),
            (
                frame("challenges:\n  - { name: c, upstream: u, credential: x, gateway: webseal, login: { fields: "),
                "none"
            ),
            (frame("challenges:\n  - { name: c, upstream: u, credential: x, scheme: "), "basic"),
            (
                frame(
                    "challenges:\n  - { name: c, upstream: u, security-check: P, credential: x, answer: { pin: \"{pin}\" }, logout: "
                ), "true"
            ),
        ])
    func words(before: String, word: String) throws {
        let ends = String(
            repeating: " }",
            count: before.split(separator: "\n").last.map { line in
                max(0, line.count { $0 == "{" } - line.count { $0 == "}" })
            } ?? 0)
        let plain = try #require(parsed(before + word + ends), "\(problems(before + word + ends))")
        #expect(parsed("\(before)\"\(word)\"\(ends)") == plain)
        #expect(parsed("\(before)'\(word)'\(ends)") == plain)
        #expect(parsed("\(before)\"${X}\"\(ends)", environment: ["X": word]) == plain, "from the environment")
    }

    @Test("the url `./form` of a login step is an address, and `form` in quotes is the page's own action")
    func formAddress() throws {
        func target(_ url: String) throws -> LoginStep.Target? {
            let yaml = challenge("name: c, upstream: u, credential: x, gateway: webseal, login: { url: \(url) }")
            guard let gateway = try #require(parsed(yaml)).challenges[0].kind as? GatewaySettings else { return nil }
            return gateway.login.first?.target
        }
        #expect(try target("\"form\"") == .form)
        #expect(try target("'form'") == .form)
        #expect(try target("form") == .form)
        #expect(try target("./form") == .address(.path("./form")))
        #expect(try target("\"/form\"") == .address(.path("/form")))
    }
}

/// Returns a tree as YAML with every key and value in quotes, except empty values and an answer's JSON, whose types
/// quotes would change.
private func quoted(_ node: YAMLNode, isJSON: Bool = false) -> String {
    switch node.content {
    case .mapping(let entries, _):
        let members = entries.map { entry in
            "\(escaped(entry.key)): \(quoted(entry.value, isJSON: isJSON || entry.key == "answer"))"
        }
        return "{ \(members.joined(separator: ", ")) }"
    case .sequence(let nodes): return "[\(nodes.map { quoted($0, isJSON: isJSON) }.joined(separator: ", "))]"
    case .scalar(let text, let isPlain):
        return node.isNull || isJSON && isPlain ? (text.isEmpty ? "~" : text) : escaped(text)
    }
}

private func escaped(_ text: String) -> String {
    let escaped = text.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : String($0) }.joined()
    return "\"\(escaped)\""
}
