// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import FoundationEssentials
import SettingsReading
import Testing

@testable import Settings

@Suite("docs/configuration.md")
struct ConfigurationPageTests {
    @Test("docs/configuration.md has every key of the schema with its range, default and sentence, and no other key")
    func tables() throws {
        #expect(KeyTable.faults(of: try Page("docs/configuration.md")) == [])
    }

    @Test(
        "a table that differs from the schema is found",
        arguments: [
            ("a missing key", "| `head` | ", ""),
            ("an unknown key", "| `head` | ", "| `heads` | "),
            ("a wrong range", "| size, 1KiB to 1MiB | ", "| size, 1KiB to 2MiB | "),
            (
                "a wrong default", "| `64KiB` | Maximum size of a request's head.",
                "| `32KiB` | Maximum size of a request's head."
            ),
            ("another sentence", "Maximum size of a request's head.", "Maximum length of a request's head."),
            ("a missing heading", "## `limits`", "## Limits"),
        ])
    func damagedTables(fault: String, written: String, changed: String) throws {
        let lines = try Page("docs/configuration.md").lines.compactMap { line -> String? in
            guard line.contains(written) else { return String(line) }
            return changed.isEmpty ? nil : String(line).replacing(written, with: changed)
        }
        let page = Page("docs/configuration.md", text: lines.joined(separator: "\n"))
        #expect(KeyTable.faults(of: page).contains { $0.contains("limits") }, "\(fault)")
    }
}

/// The documentation's table of the keys of a section, or of a kind of challenge.
struct KeyTable {
    /// One row.
    struct Row: Equatable {
        let key: String
        let words: String
        let standard: String
        let meaning: String

        var text: String { "| `\(key)` | \(words) | \(standard) | \(meaning) |" }

        /// Returns whether a row of the page is equal. Its last column may have more sentences.
        func matches(_ cells: [String]) -> Bool {
            cells.count == 4 && cells[0] == "`\(key)`" && cells[1] == words && cells[2] == standard
                && (cells[3] == meaning || cells[3].hasPrefix("\(meaning) "))
        }
    }

    /// The heading, without its number signs.
    let title: String
    let rows: [Row]

    private init(_ title: String, _ keys: [any SchemaKey]) {
        self.title = title
        rows = keys.map {
            Row(key: $0.name, words: $0.words, standard: $0.absence.words, meaning: $0.meaning)
        }
    }

    /// Returns the differences between the page and the schema.
    static func faults(of page: Page) -> [String] {
        var faults: [String] = []
        var missing = Set(all.map(\.title))
        for table in page.keyTables {
            guard let wanted = all.first(where: { $0.title == table.title }) else {
                faults.append("line \(table.line): the schema has no table \(table.title)")
                continue
            }
            missing.remove(table.title)
            let rows = wanted.rows
            let isWhole = rows.count == table.rows.count
            let differing = isWhole ? zip(rows, table.rows).filter { !$0.matches($1) }.map(\.0) : rows
            faults += differing.map { "line \(table.line), \(table.title): a row must begin with \($0.text)" }
        }
        return faults + missing.sorted().map { "the page has no table \($0)" }
    }

    /// All tables, in the order of the schema.
    static let all: [KeyTable] = {
        var tables: [KeyTable] = []
        for section in Settings.section().all {
            if section.name == "challenges" {
                tables.append(KeyTable("`challenges`", ChallengeSettings.commonKeys))
                tables += ChallengeKinds.all.map { KeyTable("Challenges with `\($0.key)`", $0.keys) }
                continue
            }
            let table = KeyTable(section.name.isEmpty ? "The file" : "`\(section.name)`", section.keys)
            // Matchers are listed under `detect`, with the additional keys of `failed`.
            if let index = tables.firstIndex(where: { $0.title == table.title }) {
                if tables[index].rows.count < table.rows.count { tables[index] = table }
            } else {
                tables.append(table)
            }
        }
        return tables
    }()
}

extension Page {
    /// The tables whose first column is called `key`, under their headings.
    var keyTables: [(title: String, line: Int, rows: [[String]])] {
        var tables: [(title: String, line: Int, rows: [[String]])] = []
        var title = ""
        var isKeys = false
        for (index, line) in lines.enumerated() {
            if line.hasPrefix("#") {
                title = String(line.drop { $0 == "#" || $0 == " " })
                isKeys = false
            } else if !line.hasPrefix("|") {
                isKeys = false
            } else if line.hasPrefix("| key |") {
                isKeys = true
                tables.append((title, index + 1, []))
            } else if isKeys, !line.hasPrefix("|---") {
                let cells = line.dropFirst(2).dropLast(2).split(separator: " | ", omittingEmptySubsequences: false)
                tables[tables.count - 1].rows.append(cells.map(String.init))
            }
        }
        return tables
    }
}

@Suite("Examples in the documentation")
struct ExampleTests {
    @Test(
        "a whole configuration in the documentation has no problems, and a part of one has no errors",
        arguments: try Page.all())
    func examples(page: Page) { expectNoProblems(in: page) }

    @Test(
        "the configuration of each application in Tests/Applications has no problems",
        arguments: try Page.applications())
    func applications(page: Page) {
        #expect(page.configurations.count == 1)
        expectNoProblems(in: page)
    }

    private func expectNoProblems(in page: Page) {
        for (line, text) in page.configurations {
            let isWhole = has("listeners", text) && has("upstreams", text)
            let whole = isWhole ? text : completed(text)
            let problems = Settings.parse(
                Array(whole.utf8), file: "\(page.path):\(line)",
                environment: ["CREDENTIALS_DIRECTORY": "/run/credentials/x"]
            ).problems
            // The files that an example names do not exist here. The shortest login by a form leaves to the server where the form goes.
            let told = problems.filter { problem in
                if problem.severity == .error { return true }
                return isWhole && !problem.keyPath.contains(".tls.")
                    && !problem.message.contains("until the first login succeeds")
            }
            #expect(told.map(\.description) == [])
        }
    }

    @Test("each recipe of docs/challenges shows a whole configuration", arguments: try recipes())
    func recipe(page: Page) {
        #expect(page.configurations.contains { has("listeners", $0.text) && has("challenges", $0.text) })
    }

    private static func recipes() throws -> [Page] { try Page.all().filter { $0.path.hasPrefix("docs/challenges/") } }

    private func has(_ key: String, _ text: String) -> Bool {
        text.split(separator: "\n").contains { $0.hasPrefix("\(key):") }
    }

    /// Returns the partial example, completed with the sections that it omits.
    private func completed(_ part: String) -> String {
        var whole = part
        if !has("upstreams", part) {
            whole += "\nupstreams: { bank: { url: \"https://bank.example.com/\" } }"
        }
        if !has("listeners", part) { whole += "\nlisteners: [{ address: 127.0.0.1:8080, upstream: bank }]" }
        return whole + "\n"
    }
}

/// A page of the documentation.
struct Page: Sendable, CustomTestStringConvertible {
    /// Its path below the repository.
    let path: String
    let lines: [Substring]

    /// Reads a page of the repository.
    init(_ path: String) throws {
        self.init(path, text: try String(contentsOfFile: "\(Self.repository)/\(path)", encoding: .utf8))
    }

    /// Creates a page with this text.
    init(_ path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    var testDescription: String { path }

    /// Returns README.md and all pages below docs.
    static func all() throws -> [Page] {
        let below = try FileManager.default.subpathsOfDirectory(atPath: "\(repository)/docs").sorted()
        return try (["README.md"] + below.filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }).map(Page.init)
    }

    /// The configuration of each application in Tests/Applications that has one of its own, with a listener, as a page.
    static func applications() throws -> [Page] {
        let folder = "Tests/Applications/apps"
        let files = try FileManager.default.contentsOfDirectory(atPath: "\(repository)/\(folder)").sorted()
        return try files.filter { $0.hasSuffix(".py") }.compactMap { file in
            let text = try String(contentsOfFile: "\(repository)/\(folder)/\(file)", encoding: .utf8)
            let parts = text.split(separator: "\"\"\"", omittingEmptySubsequences: false)
            let before = parts.firstIndex { $0.hasSuffix("configuration = ") || $0.hasSuffix("configuration = r") }
            guard let before else { return nil }
            let listener = "listeners: [{ address: 127.0.0.1:8080, upstream: \(file.dropLast(3)) }]"
            return Page("\(folder)/\(file)", text: "```yaml\n\(listener)\n\(parts[before + 1])\n```")
        }
    }

    private static let repository = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")

    /// Examples of configurations, each with the number of its first line.
    var configurations: [(line: Int, text: String)] {
        var found: [(line: Int, text: String)] = []
        var begun: Int?
        for (index, line) in lines.enumerated() {
            if let start = begun {
                guard line == "```" else { continue }
                found.append((start + 1, lines[start..<index].joined(separator: "\n")))
                begun = nil
            } else if line == "```yaml" {
                begun = index + 1
            }
        }
        return found
    }

    /// Returns the texts in backticks in a line, in order.
    static func quoted(in line: Substring) -> [String] {
        line.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
    }
}
