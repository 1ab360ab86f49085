// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import CountersignDaemon

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
