// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ArgumentParser
import ChallengeHandling
import FoundationEssentials
import Testing

@testable import CountersignDaemon

/// Returns a report with one login of upstream `bank`, with challenge `pin`.
private func report(_ status: String, _ login: [String: JSONValue], reasons: [JSONValue] = []) -> JSONValue {
    let login = login.merging(["challenge": "bank", "asks": ["pin"]]) { $1 }
    return ["status": .string(status), "reasons": .array(reasons), "upstreams": ["bank": [.object(login)]]]
}

private let rejected: [String: JSONValue] = [
    "state": "failing", "code": "login-rejected", "detail": "The PIN was wrong.",
]

@Suite("The wait command")
struct WaitTests {
    @Test("a login is ready if its session is held or not needed yet, by its own name and its checks")
    func ready() {
        for (state, name) in [("held", "bank"), ("cold", "bank"), ("held", "pin"), ("cold", "pin")] {
            #expect(Readiness(of: name, in: report("not ready", ["state": .string(state)])) == .ready)
        }
        #expect(Readiness(of: nil, in: report("ready", ["state": "cold"])) == .ready)
    }

    @Test("a login that is not ready gives its own reason, not the reasons of others")
    func reasons() {
        #expect(
            Readiness(of: "pin", in: report("not ready", rejected, reasons: ["listeners: shutting down"]))
                == .notYet("bank/bank: login-rejected: The PIN was wrong."))
        #expect(
            Readiness(of: "pin", in: report("ready", ["state": "logging-in"]))
                == .notYet("bank/bank: its login is under way"))
        #expect(
            Readiness(of: nil, in: report("not ready", rejected, reasons: ["one: a", "two: b"]))
                == .notYet("one: a; two: b"))
        #expect(Readiness(of: nil, in: ["detail": "No room."]) == .notYet("No room."))
    }

    @Test("wait fails at once for an unknown login, and lists the known ones")
    func unknown() {
        let failure = #expect(throws: Failure.self) {
            try WaitCommand.wait(for: "pni", atMost: .seconds(3600)) { _ in report("ready", ["state": "held"]) }
        }
        #expect(failure?.code == EX_USAGE)
        #expect(
            failure?.description
                == "no login of the daemon has the name pni; did you mean \"pin\"?: there are bank, pin")
    }

    @Test("wait fails at once if this user may not connect to the daemon")
    func permission() {
        let failure = #expect(throws: Failure.self) {
            try WaitCommand.wait(for: nil, atMost: .seconds(3600)) { (_) throws(Failure) in
                throw Failure("this user may not connect to the daemon", code: EX_NOPERM)
            }
        }
        #expect(failure?.code == EX_NOPERM)
    }

    @Test("wait asks an unreachable daemon again until the timeout, and then gives the last reason")
    func again() {
        var asked = 0
        #expect(throws: Never.self) {
            try WaitCommand.wait(for: "pin", atMost: .seconds(60)) { (_) throws(Failure) in
                asked += 1
                guard asked > 2 else { throw Failure("it does not answer", code: EX_UNAVAILABLE) }
                return report("ready", ["state": "held"])
            }
        }
        #expect(asked == 3)
        let failure = #expect(throws: Failure.self) {
            try WaitCommand.wait(for: "pin", atMost: .milliseconds(10)) { _ in report("not ready", rejected) }
        }
        #expect(failure?.code == EX_UNAVAILABLE)
        #expect(failure?.description.hasSuffix(": bank/bank: login-rejected: The PIN was wrong.") == true)
    }
}

@Suite("The lines of countersign status")
struct StatusLinesTests {
    @Test("status says since when, from which file, how the last reload ended, what fails, and what a latch waits for")
    func lines() {
        let report: JSONValue = [
            "status": "not ready", "version": "1.2", "process": .integer(7), "started_at": .integer(1_000_000),
            "configuration": "/etc/c.yaml", "listeners": ["127.0.0.1:8080", "unix:/run/x"],
            "reload": ["ended_at": .integer(1_000_060), "refusal": "c.yaml:1:2: wrong"],
            "figures": ["exchanges": .integer(9), "local_replies": .integer(2), "connections": .integer(1)],
            "reasons": ["wiki: every request fails"],
            "outages": [
                "wiki": [
                    "since": .integer(1_000_100), "last": .integer(1_000_118), "failures": .integer(61),
                    "partial": .bool(false), "reason": "The upstream refuses connections.",
                ]
            ],
            "upstreams": [
                "wiki": [
                    ["challenge": "sso", "credential": "ann", "state": "held", "held_seconds": .integer(90)]
                ]
            ],
            "latches": [
                ["challenge": "pin", "closed_at": .integer(1_000_000), "detail": "It was rejected. Change it."]
            ],
        ]
        #expect(
            StatusLines.lines(of: report, now: 1_000_120) == [
                "status    not ready, version 1.2, process 7, since 1970-01-12 13:46:40Z (2 min ago)",
                "file      /etc/c.yaml",
                "reload    refused 1970-01-12 13:47:40Z (60 s ago), the old configuration stays in force: c.yaml:1:2: wrong",
                "listens   127.0.0.1:8080, unix:/run/x",
                "requests  9, answered here: 2; callers connected: 1, tunnels: 0",
                "problem   wiki: every request fails",
                "upstream  wiki: all requests since 1970-01-12 13:48:20Z (20 s ago) failed (61, the last "
                    + "1970-01-12 13:48:38Z (2 s ago)): The upstream refuses connections.",
                "session   wiki/sso by ann: held for 90 s",
                "latch     pin: It was rejected. Change it. Closed 1970-01-12 13:46:40Z (2 min ago).",
            ])
    }
}

@Suite("Lines on a terminal")
struct TerminalTests {
    @Test("a long line is wrapped at blanks, below its text, and an address stays whole")
    func wrapped() {
        #expect(Terminal.wrapped("short", at: 40) == ["short"])
        #expect(
            Terminal.wrapped("latch     pin: The server rejected the credential. Change it.", at: 40) == [
                "latch     pin: The server rejected the", "          credential. Change it.",
            ])
        let url = "https://www.example.com/a/very/long/path/that/is/wider"
        #expect(Terminal.wrapped("  see \(url) now", at: 40) == ["  see", "    \(url)", "    now"])
        #expect(Terminal.wrapped("\(url) \(url)", at: 40) == [url, "  \(url)"])
    }

    @Test("every wrapped part fits unless one word is wider, and no word is lost")
    func fits() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let words = (0..<Int.random(in: 1...30, using: &generator)).map { _ in
                String(repeating: "x", count: Int.random(in: 1...20, using: &generator))
            }
            let line = words.joined(separator: " ")
            let parts = Terminal.wrapped(line, at: 40)
            #expect(parts.allSatisfy { $0.count <= 40 })
            #expect(parts.flatMap { $0.split(separator: " ") }.map(String.init) == words)
        }
    }
}

@Suite("docs/commands.md")
struct CommandPageTests {
    @Test("docs/commands.md has a section for each command, and for no other")
    func commands() throws {
        let repository = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let text = try String(contentsOfFile: "/\(repository)/docs/commands.md", encoding: .utf8)
        let told = text.split(separator: "\n").filter { $0.hasPrefix("### `") }.map {
            $0.dropFirst(4).filter { $0 != "`" }
        }
        let known = Program.configuration.subcommands.compactMap { $0.configuration.commandName }
        #expect(Set(told) == Set(known))
        #expect(known.count > 10)
    }
}
