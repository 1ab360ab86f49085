// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FoundationEssentials
import Glibc
import Settings
import SettingsReading
import TestSupport
import Testing

@Suite("Reading the file")
struct LoadingTests {
    @Test("a file that cannot be read is reported by its name")
    func unreadable() throws {
        let folder = try temporaryFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(lines("\(folder)/none.yaml") == ["\(folder)/none.yaml: there is no such file"])
        #expect(lines(folder) == ["\(folder): is a directory; name the file in it"])
        #expect(lines("") == [": is not the path of a file"])
        let large = "\(folder)/large.yaml"
        #expect(FileManager.default.createFile(atPath: large, contents: Data(repeating: 0x23, count: 1_048_577)))
        #expect(lines(large) == ["\(large): is larger than 1 MiB, the limit for this file"])
    }

    @Test("a pipe is read to its end, and one that nobody writes to is an empty file")
    func pipes() throws {
        let folder = try temporaryFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(unsafe mkfifo("\(folder)/pipe", 0o600) == 0)
        let (settings, problems) = Settings.load(path: "\(folder)/pipe", environment: [:])
        #expect(settings == nil && problems.count == 1)

        var ends: [Int32] = [-1, -1]
        #expect(unsafe pipe(&ends) == 0)
        defer { close(ends[0]) }
        let text = Array(frame("audit: none").utf8)
        #expect(unsafe write(ends[1], text, text.count) == text.count)
        close(ends[1])
        #expect(Settings.load(path: "/dev/fd/\(ends[0])", environment: [:]).settings?.audit == AuditDestination.none)
    }

    @Test("a configuration file is read to its end")
    func readable() throws {
        let folder = try temporaryFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = "\(folder)/a.yaml"
        // Longer than one read.
        let padding = String(repeating: "# padding\n", count: 10_000)
        #expect(FileManager.default.createFile(atPath: path, contents: Data((padding + frame("audit: none")).utf8)))
        let (settings, problems) = Settings.load(path: path, environment: [:])
        #expect(problems == [])
        #expect(settings?.audit == AuditDestination.none)
    }

    @Test("all errors and warnings are reported at once, in the order of the file")
    func allAtOnce() {
        let yaml = """
            wrkers: 2
            listeners:
              - adress: 127.0.0.1:8080
                upstream: bnk
            upstreams:
              bank:
                url: bank.example
                url: https://bank.example
            challenges:
              - { name: pin, upstream: bank, gateway: webseal, credential: x }
            """
        #expect(
            problems(yaml) == [
                "f:1:1: wrkers: unknown key; did you mean \"workers\"?",
                "f:3:5: listeners[0].adress: unknown key; did you mean \"address\"?",
                "f:4:15: listeners[0].upstream: there is no upstream \"bnk\"; did you mean \"bank\"?",
                "f:7:10: upstreams.bank.url: is not an address (use http:// or https://, a host, and optionally a port and a path)",
                "f:8:5: upstreams.bank.url: is a repeated key: the first one is in line 7",
            ])
        #expect(parsed(yaml) == nil)
    }

    @Test("the name of Kerberos and SPNEGO in a configuration is suggested")
    func otherNames() {
        let yaml = """
            upstreams: { u: { url: "https://u" } }
            listeners: ["127.0.0.1:80"]
            challenges: [{ name: c, upstream: u, scheme: kerberos, credential: x }]
            """
        #expect(
            problems(yaml).count == 1 && problems(yaml)[0].contains("did you mean \"negotiate\"?"), "\(problems(yaml))")
    }

    @Test("a section without a value is read as absent")
    func emptySections() {
        #expect(problems(frame("admin:\nlimits: ~\nchallenges:\n")) == [])
    }

    @Test(
        "a file that is not a mapping or lacks a required key is reported",
        arguments: [
            ("- a", ["f:1:1: must be a mapping, but this is a list"]),
            ("{}", ["f:1:1: upstreams: is missing", "f:1:1: listeners: is missing"]),
            (
                "listeners: []\nupstreams: {}",
                ["f:1:12: listeners: needs at least one listener", "f:2:12: upstreams: needs at least one upstream"]
            ),
            (
                "a: [",
                ["f:2:1: while parsing a flow node: did not find expected node content"]
            ),
        ])
    func noSettings(text: String, expected: [String]) {
        #expect(problems(text) == expected)
    }

    private func lines(_ path: String) -> [String] {
        let (settings, problems) = Settings.load(path: path, environment: [:])
        #expect(settings == nil)
        return problems.map(\.description)
    }

    private func temporaryFolder() throws -> String {
        let path = "\(FileManager.default.temporaryDirectory.path)/settings-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }
}

@Suite("Damaged files")
struct DamagedFileTests {
    @Test("reading a damaged file ends with settings, or with an error that has a position")
    func damage() {
        var random = SplitMix(state: 7)
        let intact = Array(everything.utf8)
        let signs = Array("{}[]:,-#*&!|>'\"%@`$\t\n 0a\u{0}".utf8) + [0xFF, 0xC3]
        var failures = 0
        for _ in 0..<150 {
            var bytes = intact
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes.remove(at: index)
                case 1: bytes.insert(signs.randomElement(using: &random) ?? 0, at: index)
                case 2: bytes[index] = signs.randomElement(using: &random) ?? 0
                default: bytes.removeSubrange(index..<min(index + 40, bytes.count))
                }
            }
            let (settings, problems) = Settings.parse(bytes, file: "f", environment: [:])
            let errors = problems.filter { $0.severity == .error }
            #expect((settings == nil) == !errors.isEmpty)
            #expect(errors.allSatisfy { $0.mark != nil })
            failures += errors.isEmpty ? 0 : 1
        }
        #expect(failures > 75)
    }
}
