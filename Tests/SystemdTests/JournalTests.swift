// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import Systemd

@Suite("The journal")
struct JournalTests {
    @Test("a journal entry concatenates its fields")
    func arena() {
        var entry = JournalEntry()
        entry.append(.message, "two\nlines")
        entry.append(.priority, "6")
        #expect(entry.fields == ["MESSAGE=two\nlines", "PRIORITY=6"])
        #expect(entry.ends == [17, 27])
    }

    @Test("a journal entry is limited in the number and length of its fields")
    func bounded() {
        var entry = JournalEntry()
        entry.append(.message, String(repeating: "a", count: JournalEntry.maximumValueBytes + 1))
        #expect(entry.arena.count == "MESSAGE=".utf8.count + JournalEntry.maximumValueBytes)
        for _ in 0..<100 { entry.append(.priority, "6") }
        #expect(entry.ends.count == JournalEntry.maximumFields)
    }

    @Test("libsystemd accepts journal entries, including an empty one and one with line breaks")
    func accepted() throws {
        // The result does not depend on a running journal; a bad name or an empty vector would throw here.
        var entry = JournalEntry()
        try Journal.send(entry)
        entry.append(.message, "a test of countersign\nwith two lines")
        entry.append(.priority, "7")
        try Journal.send(entry)
    }

    @Test("JOURNAL_STREAM counts only if it names the descriptor's own file")
    func stream() throws {
        let pair = try UnixSocket(SOCK_STREAM)
        let other = try UnixSocket(SOCK_STREAM)
        let identity = try identity(of: pair.descriptor)
        #expect(Journal.isStream(descriptor: pair.descriptor, environment: ["JOURNAL_STREAM": identity]))
        #expect(!Journal.isStream(descriptor: other.descriptor, environment: ["JOURNAL_STREAM": identity]))
        #expect(!Journal.isStream(descriptor: pair.descriptor, environment: [:]))
        #expect(!Journal.isStream(descriptor: -1, environment: ["JOURNAL_STREAM": identity]))
    }

    @Test("a malformed JOURNAL_STREAM matches no file", arguments: ["", ":", "1", "1:", "1:2:3", "a:b", "-1:2"])
    func damaged(text: String) {
        #expect(JournalStream(text) == nil)
    }

    private func identity(of descriptor: Int32) throws -> String {
        var status = stat()
        try #require(unsafe fstat(descriptor, &status) == 0)
        return "\(status.st_dev):\(status.st_ino)"
    }
}

@Suite("Names of journal fields")
struct JournalFieldTests {
    @Test("a journal field name is a capital letter, then capitals, digits and underscores, at most 64")
    func exact() {
        for good in ["A", "EXCHANGE_ID", "X9", String(repeating: "A", count: 64)] {
            #expect(JournalField(good)?.name == good)
        }
        for bad in ["", "_PID", "9A", "a", "A-B", "A=B", "A\nB", "Ä", String(repeating: "A", count: 65)] {
            #expect(JournalField(bad) == nil)
        }
    }

    @Test(
        "a metadata key becomes a journal field name",
        arguments: [
            ("exchange-id", "EXCHANGE_ID"), ("upstream", "UPSTREAM"), ("http.status", "HTTP_STATUS"),
            ("_private", "PRIVATE"), ("2fa", "FA"), ("a=b\nc", "A_B_C"), ("größe", "GR____E"),
        ])
    func made(key: String, name: String) {
        #expect(JournalField(metadataKey: key)?.name == name)
    }

    @Test("a metadata key without a letter gives no journal field, and a long one is truncated")
    func limits() {
        #expect(JournalField(metadataKey: "") == nil)
        #expect(JournalField(metadataKey: "-9-") == nil)
        #expect(JournalField(metadataKey: String(repeating: "k", count: 500))?.name.utf8.count == 64)
    }

    @Test(
        "a metadata key cannot forge a predefined journal field",
        arguments: ["message", "priority", "MESSAGE_ID", "unit"])
    func reserved(key: String) {
        #expect(JournalField(metadataKey: key)?.name == "METADATA_\(key.uppercased())")
    }
}
