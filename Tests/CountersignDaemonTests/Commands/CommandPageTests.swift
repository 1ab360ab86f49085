// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ArgumentParser
import FoundationEssentials
import Testing

@testable import CountersignDaemon

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
