// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import SettingsReading
import Testing

@testable import Settings

@Suite("docs/configuration.md")
struct ConfigurationPageTests {
    @Test("has every key of the format, and no other")
    func keys() throws {
        let documented = documentedKeys(try Page("docs/configuration.md"))
        let known = knownKeys()
        #expect(known.subtracting(documented).sorted() == [], "keys that the page lacks")
        #expect(documented.subtracting(known).sorted() == [], "keys that the format lacks")
        #expect(known.count > 100)
    }

    /// A heading names a mapping, such as `upstreams.*.tls`; in the tables below it, whose first column is called `key`, each row
    /// begins with a key of it.
    private func documentedKeys(_ page: Page) -> Set<String> {
        var keys: Set<String> = []
        var mapping: String?
        var isKeys = false
        for line in page.lines {
            if line.hasPrefix("#") {
                mapping = line == "## The file" ? "" : Page.quoted(in: line).first
                isKeys = false
            } else if !line.hasPrefix("|") {
                isKeys = false
            } else if line.hasPrefix("| key |") {
                isKeys = true
            } else if isKeys, !line.hasPrefix("|---"), let mapping {
                for key in Page.quoted(in: line.dropFirst().prefix { $0 != "|" }) {
                    keys.insert(mapping.isEmpty ? key : "\(mapping).\(key)")
                }
            }
        }
        return keys
    }

    /// What the reader of the format asks for in a file that has every mapping, in the words of the page.
    private func knownKeys() -> Set<String> {
        let byUser = challenge("name: c, upstream: u, scheme: basic, credential: { by-user: { ann: c } }")
        let own = challenge("name: c, upstream: u, handler: h")
        let texts = [own, everything + "\naccess-log: { format: json }\n", byUser]
        let asked = texts.flatMap { text in
            let reading = Reading(file: "f", environment: [:])
            _ = Settings.parse(Array(text.utf8), reading)
            return reading.knownKeys
        }
        return Set(asked.map(Self.documented))
    }

    /// How the page writes it: no numbers, `*` for a name, and the matchers of all places as one, as all that TLS has.
    private static func documented(_ key: String) -> String {
        key.replacing(#/\[\d+\]/#, with: "")
            .replacing(#/^upstreams\.(bank|ledger|u)(?=\.)/#, with: "upstreams.*")
            .replacing(#/^sessions\.tls\./#, with: "upstreams.*.tls.")
            .replacing(#/^challenges\.(login\.)?(detect|success|failed)\./#, with: "challenges.detect.")
    }
}
