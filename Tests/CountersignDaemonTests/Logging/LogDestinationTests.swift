// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import CountersignDaemon

@Suite("Where the log goes")
struct LogDestinationTests {
    private typealias StandardError = LogDestination.StandardError

    @Test("auto is the journal under systemd, text on a terminal, JSON otherwise")
    func auto() {
        #expect(LogDestination.choose(.auto, StandardError(isJournal: true)) == .journal)
        #expect(LogDestination.choose(.auto, StandardError(isTerminal: true)) == .text(colour: true))
        #expect(LogDestination.choose(.auto, StandardError()) == .json)
    }

    @Test("the native protocol is spoken only where standard error is the journal's")
    func journal() {
        #expect(LogDestination.choose(.journal, StandardError(isJournal: true)) == .journal)
        #expect(LogDestination.choose(.journal, StandardError(isTerminal: true)) == .prefixed)
    }

    @Test("a format that is asked for holds everywhere, but colour is for a terminal that has it")
    func explicit() {
        #expect(LogDestination.choose(.json, StandardError(isJournal: true)) == .json)
        #expect(LogDestination.choose(.text, StandardError()) == .text(colour: false))
        #expect(LogDestination.choose(.text, StandardError(isTerminal: true, isPlain: true)) == .text(colour: false))
    }
}
