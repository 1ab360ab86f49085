// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Systemd
import Testing

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
