// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
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
            // Matchers stand under `detect`, with what those of `failed` have besides.
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
