// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import FoundationEssentials
import SettingsReading
import Testing

@testable import Settings

@Suite("The configurations that are shipped")
struct ShippedFilesTests {
    @Test("config/countersign.yaml and config/minimal.yaml have no problems", arguments: ["countersign", "minimal"])
    func load(name: String) {
        let (settings, problems) = Settings.load(path: path(name), environment: [:])
        #expect(problems.map(\.description) == [])
        #expect(settings?.challenges.first?.name == "bank-pin")
    }

    @Test("config/countersign.yaml shows every key of the schema, and no other key")
    func complete() throws {
        let text = try text()
        let shown = try ShownKeys(in: text)
        // Some keys exclude a key that is shown, so a comment shows them.
        let missing = shown.known.filter { key in
            let name = key.split(separator: ".").last ?? ""
            return shown.values[key] == nil && !text.contains("`\(name): ") && !text.contains("{ \(name): ")
        }
        #expect(missing.sorted() == [])
        #expect(shown.unknown == [])
    }

    @Test("config/countersign.yaml shows the default of each key that has one, or says that it shows an example")
    func defaults() throws {
        #expect(try ShownKeys(in: text()).withoutDefault == Self.examples)
    }

    @Test(
        "a wrong default or an unknown key in config/countersign.yaml is found",
        arguments: [
            ("login: 1m }", "login: 2m }", "upstreams.*.timeouts.login"),
            ("#  minimum: \"1.2\"", "#  minimum: \"1.3\"", "upstreams.*.tls.minimum"),
            ("every: 30s }", "every: 31s }", "upstreams.*.check.every"),
            ("  #    method: POST", "  #    method: PUT", "challenges.login.method"),
            ("  #    timeout: 10s", "  #    timeouts: 10s", "challenges.login.timeouts"),
            ("keep-attempts: 1", "keep-tries: 1", "challenges.keep-tries"),
        ])
    func damaged(written: String, changed: String, key: String) throws {
        let text = try text()
        try #require(text.contains(written))
        let shown = try ShownKeys(in: text.replacing(written, with: changed))
        #expect((shown.unknown + shown.withoutDefault).filter { !Self.examples.contains($0) } == [key])
    }

    /// Keys with a default for which the file shows an example, and says so.
    private static let examples = [
        "access-log", "challenges.logout", "challenges.token.scope", "credentials.sources", "listeners.hosts",
        "listeners.routes.strip-prefix", "upstreams.*.tls.pin",
    ]

    @Test("config/countersign.yaml has no errors if its commented keys are switched on")
    func commentedOut() throws {
        let uncommented = ShownKeys.uncommented(try text())
        let errors = Settings.parse(Array(uncommented.utf8), file: "f", environment: Self.environment).problems
            .filter { $0.severity == .error }
        #expect(errors.map(\.description) == [])
        let settings = Settings.parse(Array(uncommented.utf8), file: "f", environment: Self.environment).settings
        #expect(settings?.challenges.count == 11)
    }

    private func text() throws -> String { try String(contentsOfFile: path("countersign"), encoding: .utf8) }

    /// Environment of the systemd unit.
    private static let environment = ["CREDENTIALS_DIRECTORY": "/run/credentials/countersign.service"]

    private func path(_ name: String) -> String {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return "/\(root)/config/\(name).yaml"
    }
}

/// The keys that an example file shows, commented out or not.
private struct ShownKeys {
    /// All keys of the schema.
    let known = Set(Settings.section().all.flatMap { section in section.names.map { Self.key(section, $0) } })
    /// The shown values by key.
    var values: [String: [String]] = [:]
    /// Shown keys that the schema does not have.
    var unknown: [String] = []

    /// Reads the keys and values of `text`.
    init(in text: String) throws {
        visit(try YAMLComposer.compose(Array(Self.uncommented(text).utf8)).root, Settings.section())
    }

    /// Shown keys with a default that is not among their values, sorted.
    var withoutDefault: [String] {
        Self.standards.filter { key, standard in values[key].map { !$0.contains(standard) } ?? false }.keys.sorted()
    }

    /// Returns the text with its commented keys switched on. A key in a comment has no space after its `#`.
    static func uncommented(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line -> String in
            let indent = line.prefix { $0 == " " }
            let rest = line.dropFirst(indent.count)
            guard rest.hasPrefix("#"), !rest.hasPrefix("# ") || rest.hasPrefix("#  ") else { return String(line) }
            return String(indent + rest.dropFirst())
        }
        // One of the lines is another way to write the line before it.
        return lines.filter { !$0.hasPrefix("  address: [unix") }.joined(separator: "\n")
    }

    /// Defaults by key.
    private static let standards: [String: String] = {
        var standards: [String: String] = [:]
        for section in Settings.section().all {
            for key in section.keys {
                guard case .standard(let node, _) = key.absence, node != .emptyMapping else { continue }
                standards[Self.key(section, key.name)] = node.flowText
            }
        }
        return standards
    }()

    /// Reads `node`, a mapping with the keys of `section`, or a list of such mappings.
    private mutating func visit(_ node: YAMLNode, _ section: KeySection) {
        switch node.content {
        case .scalar: break
        case .sequence(let elements): for element in elements { visit(element, section) }
        case .mapping(let entries, _):
            for entry in entries {
                let keys = section.keys.filter { $0.name == entry.key }
                if keys.isEmpty { unknown.append(Self.key(section, entry.key)) }
                for key in keys {
                    values[Self.key(section, key.name), default: []].append(entry.value.flowText)
                    guard let inner = key.section, Self.isMeant(inner, by: entry.value) else { continue }
                    guard inner.name.hasSuffix(".*"), case .mapping(let members, _) = entry.value.content else {
                        visit(entry.value, inner)
                        continue
                    }
                    for member in members { visit(member.value, inner) }
                }
            }
        }
    }

    /// Returns false for the form of `inject` that is not written: with keys, or with the names of fields.
    private static func isMeant(_ section: KeySection, by value: YAMLNode) -> Bool {
        guard section.name.hasPrefix("challenges.inject"), case .mapping(let entries, _) = value.content else {
            return true
        }
        let hasKeys = entries.contains { ["query", "path", "body", "fields"].contains($0.key) }
        return hasKeys == (section.name == "challenges.inject")
    }

    private static func key(_ section: KeySection, _ name: String) -> String {
        section.name.isEmpty ? name : "\(section.name).\(name)"
    }
}
