// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import Testing

@testable import CountersignDaemon

@Suite("The destination of the log")
struct LogDestinationTests {
    private typealias StandardError = LogDestination.StandardError

    @Test("log format auto is the journal under systemd, text on a terminal, JSON otherwise")
    func auto() {
        #expect(LogDestination.choose(.auto, StandardError(isJournal: true)) == .journal)
        #expect(LogDestination.choose(.auto, StandardError(isTerminal: true)) == .text(colour: true))
        #expect(LogDestination.choose(.auto, StandardError()) == .json)
    }

    @Test("the journal's native protocol is used only if standard error is the journal's stream")
    func journal() {
        #expect(LogDestination.choose(.journal, StandardError(isJournal: true)) == .journal)
        #expect(LogDestination.choose(.journal, StandardError(isTerminal: true)) == .prefixed)
    }

    @Test("a configured log format applies everywhere, but colour only on a terminal that supports it")
    func explicit() {
        #expect(LogDestination.choose(.json, StandardError(isJournal: true)) == .json)
        #expect(LogDestination.choose(.text, StandardError()) == .text(colour: false))
        #expect(LogDestination.choose(.text, StandardError(isTerminal: true, isPlain: true)) == .text(colour: false))
    }
}
