// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SettingsReading
import Testing

@testable import Settings

@Suite("Single values")
struct ScalarTests {
    @Test("a variable of the environment is replaced in any value, and $${ is a literal ${")
    func environment() throws {
        let yaml = challenge("name: c, upstream: u, inject: { A: \"${X}-${Y_1}$${b}$$\" }, credential: x")
        let settings = try #require(parsed(yaml, environment: ["X": "1", "Y_1": ""]))
        guard let fields = (settings.challenges[0].kind as? InjectionSettings)?.fields else {
            Issue.record("the challenge injects")
            return
        }
        #expect(fields.map(\.value.source) == ["1-${b}$$"])
        #expect(listening("${PORT}", ["PORT": "81"])?.listeners[0].address == .tcp(host: "127.0.0.1", port: 81))
    }

    @Test(
        "an unset variable in a value is reported",
        arguments: [
            ("${X}", "the environment variable X is not set"),
            ("${X", "${ has no closing }; write $${ for a literal ${"),
            ("${1X}", "\"1X\" is not the name of an environment variable; write $${ for a literal ${"),
            ("${}", "\"\" is not the name of an environment variable; write $${ for a literal ${"),
        ])
    func unset(text: String, reason: String) {
        #expect(problems(frame("audit: \"\(text)\"")) == ["f:4:8: audit: \(reason)"])
    }

    @Test(
        "a secret in the file or from the environment is refused",
        arguments: [
            ("security-check: P, answer: { pin: \"1234\" }", "answer.pin", 68, "pin"),
            ("security-check: P, answer: { pin: 1234 }", "answer.pin", 68, "pin"),
            ("security-check: P, answer: { a: { j_password: \"${X}\" } }", "answer.a.j_password", 80, "password"),
            ("inject: { X-Api-Key: abc }", "inject.X-Api-Key", 55, "key"),
            ("inject: { Authorization: \"Bearer ${X}\" }", "inject.Authorization", 59, "field"),
        ])
    func secrets(text: String, path: String, column: Int, field: String) {
        let yaml = challenge("name: c, upstream: u, \(text), credential: x")
        #expect(
            problems(yaml, environment: ["X": "1"]) == [
                "f:5:\(column - 5): challenges[0].\(path): \(secretAdvice(field))"
            ])
    }

    @Test(
        "a name that only resembles a secret's is accepted",
        arguments: ["cache-key: a", "token_format: b", "X-Pinned: c"])
    func noSecrets(text: String) {
        #expect(problems(challenge("name: c, upstream: u, inject: { \(text) }")) == [])
    }

    @Test("unquoted numbers, flags and null of an answer are those of JSON")
    func json() throws {
        let yaml = challenge(
            "name: c, upstream: u, security-check: P, "
                + "answer: { a: 1, b: -2.5e1, c: true, d: ~, e: yes, f: \"1\", g: 0x10, h: [], i: 1.2.3, j: +x }")
        guard let check = parsed(yaml)?.challenges[0].kind as? SecurityCheckSettings else {
            Issue.record("the challenge is a security check")
            return
        }
        #expect(
            try check.answer
                == .init([
                    "a": 1, "b": .double(-25), "c": true, "d": nil, "e": "yes", "f": "1", "g": "0x10", "h": [],
                    "i": "1.2.3",
                    "j": "+x",
                ]))
    }

    @Test(
        "limits, workers and log settings outside their ranges are reported",
        arguments: [
            ("workers: 0", "workers: \"0\" is neither auto nor a whole number from 1 to 64", 10),
            ("limits: { callers: 0 }", "limits.callers: \"0\" is not a whole number from 1 to 1048576", 20),
            ("limits: { head: 1B }", "limits.head: must be from 1KiB to 1MiB", 17),
            (
                "limits: { replay: lots }",
                "limits.replay: \"lots\" is not a valid size (use 64KiB, 16MiB)", 19
            ),
            (
                "log: { level: inf }",
                "log.level: \"inf\" is not one of trace, debug, info, notice, warning, error, critical; did you mean \"info\"?",
                15
            ), ("audit: syslog", "audit: \"syslog\" is not one of journal, none", 8),
            (
                "credentials: { sources: [enf] }",
                "credentials.sources[0]: \"enf\" is not one of env, systemd, keyring, exec; did you mean \"env\"?", 26
            ),
            ("credentials: { sources: [keyring] }", "credentials.sources[0]: keyring needs a path: `keyring: /…`", 26),
            (
                "credentials: { sources: [env, env] }",
                "credentials.sources[1]: this source is already in the list",
                31
            ), ("credentials: { sources: [exec: []] }", "credentials.sources[0].exec: does not name a program", 32),
            (
                "credentials: { sources: [{ exec: [/h], key-file: /k }] }",
                "credentials.sources[0].key-file: belongs to another source: write that source as a new list element",
                50
            ),
            ("credentials: { ask: { a: [] } }", "credentials.ask.a: does not name a field", 26),
            (
                "credentials: { ask: { a: p } }",
                "credentials.ask.a: warning: nothing uses a credential of this name", 26
            ),
            ("credentials: { ask: [a] }", "credentials.ask: must be a mapping of names, but this is a list", 21),
            ("limit: {}", "limit: unknown key; did you mean \"limits\"?", 1),
        ])
    func operations(text: String, problem: String, column: Int) {
        #expect(problems(frame(text)) == ["f:4:\(column): \(problem)"])
    }

    private func listening(_ port: String, _ environment: [String: String]) -> Settings? {
        parsed(frame().replacing("8080", with: port), environment: environment)
    }
}

@Suite("Values of the settings")
struct ValueTests {
    @Test(
        "a listen address prints as the configuration writes it",
        arguments: [
            (ListenAddress.tcp(host: "127.0.0.1", port: 8080), "127.0.0.1:8080"),
            (.tcp(host: "::1", port: 80), "[::1]:80"), (.systemd(name: "http"), "systemd:http"),
            (.unix(path: "/run/a.sock", mode: nil), "unix:/run/a.sock"),
            (.unix(path: "/run/a.sock", mode: 0o660), "unix:/run/a.sock?mode=0660"),
        ])
    func address(address: ListenAddress, text: String) {
        #expect(address.description == text)
    }

    @Test("a problem is printed as FILE:LINE:COL on one line")
    func problem() {
        var problem = Problem(
            file: "a.yaml", mark: Mark(line: 3, column: 7), keyPath: "listeners[0].upstream",
            message: "no such upstream",
            severity: .error)
        #expect(problem.description == "a.yaml:3:7: listeners[0].upstream: no such upstream")
        problem.severity = .warning
        #expect(problem.description == "a.yaml:3:7: listeners[0].upstream: warning: no such upstream")
        problem.mark = nil
        problem.keyPath = ""
        #expect(problem.description == "a.yaml: warning: no such upstream")
    }
}

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
