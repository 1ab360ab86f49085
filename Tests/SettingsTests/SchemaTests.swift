// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SettingsReading
import Testing

@testable import Settings

@Suite("The schema of the configuration")
struct SchemaTests {
    @Test("every key of every table has a reader that asks for it")
    func asked() {
        let texts = [
            everything, everything.replacing("audit: none", with: "audit: none\naccess-log: { format: json }"),
            challenge("name: c, upstream: u, handler: h"),
            challenge("name: c, upstream: u, credential: c, sign: { message: host, algorithm: ed25519 }"),
            challenge("name: c, upstream: u, scheme: basic, credential: { by-user: { ann: c } }"),
            frame(listener: "callers: { field: X-T, credentials: [c], limit: 1 }"),
            challenge("name: c, upstream: u, gateway: form, credential: c, inject: { X-A: { value: v, on: POST } }"),
            challenge(
                "name: c, upstream: u, inject: { query: { a: b }, path: /a, body: { /a: b }, fields: { A: b }, clean: pages }"
            ),
            challenge("name: c, upstream: u, security-check: P, credential: c, answer: { pin: \"{pin}\" }"),
            challenge(
                "name: c, upstream: u, credential: c, sign: { aws: { region: r, service: s, assume-role: { role: a, url: "
                    + "\"https://s.example/\" } } }"),
            challenge("name: c, upstream: u, credential: c, sign: { hmac: sha256, over: \"{method}\", field: X-S }"),
        ]
        let asked = texts.reduce(into: Set<String>()) { asked, text in
            let reading = Reading(file: "f", environment: [:], handlers: ["h"])
            _ = Settings.parse(Array(text.utf8), reading)
            asked.formUnion(reading.readKeys)
        }
        let known = Set(sections.flatMap { section in section.names.map { key(section, $0) } })
        #expect(known.subtracting(asked).sorted() == [], "keys without a reader")
        #expect(asked.subtracting(known).sorted() == [], "keys that no table has")
        #expect(known.count > 120)
    }

    @Test("every default of the schema has a written form")
    func defaults() {
        for section in sections {
            for one in section.keys {
                guard case .standard(let node, _) = one.absence else { continue }
                #expect(node != .null, "\(key(section, one.name)) has a default that its form does not write")
            }
        }
    }

    @Test("every key is described by one sentence of at most 20 words")
    func sentences() {
        for section in sections {
            for one in section.keys {
                let name = key(section, one.name)
                #expect(one.meaning.first?.isUppercase == true || one.meaning.hasPrefix("`"), "\(name)")
                #expect(one.meaning.hasSuffix("."), "\(name)")
                #expect(!one.meaning.dropLast().contains(". "), "\(name) has more than one sentence")
                #expect(one.meaning.count <= 130 && one.meaning.split(separator: " ").count <= 20, "\(name) is long")
                #expect(!one.words.contains(" | ") && !one.absence.words.contains(" | "), "\(name) breaks its table")
            }
        }
    }

    @Test("the fuzzer's dictionary of YAML has every key and every keyword of the schema, and no others")
    func dictionary() throws {
        let page = try Page("Tests/Fuzz/dictionaries/yaml.dict")
        func part(_ heading: String) -> [String] {
            page.lines.drop { $0 != heading }.dropFirst().prefix { $0.hasPrefix("\"") }.map(String.init)
        }
        #expect(part("# Keys.") == Set(sections.flatMap(\.names)).map { "\"\($0): \"" }.sorted())
        #expect(
            part("# Keywords.") == Set(sections.flatMap { $0.keys.flatMap(\.choices) }).map { "\"\($0)\"" }.sorted())
    }

    private let sections = Settings.section().all

    private func key(_ section: KeySection, _ name: String) -> String {
        section.name.isEmpty ? name : "\(section.name).\(name)"
    }
}
