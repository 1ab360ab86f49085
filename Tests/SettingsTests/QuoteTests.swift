// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SettingsReading
import Testing

@testable import Settings

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

/// A tree as YAML in which every key and value is in quotes, save nothing at all, and the JSON of an answer, where quotes make text.
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
