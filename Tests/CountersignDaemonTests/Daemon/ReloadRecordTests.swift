// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import CountersignDaemon

@Suite("The record of reloads")
struct ReloadRecordTests {
    @Test(
        "a reload record is read as it was written",
        arguments: [
            ReloadRecord(configuration: "/etc/countersign/countersign.yaml", count: 0, refusal: nil),
            ReloadRecord(configuration: "a b", count: 7, refusal: "x.yaml:1:2: what: é is wrong"),
        ])
    func roundTrip(_ record: ReloadRecord) {
        #expect(ReloadRecord(record.text) == record)
    }

    @Test("a reload record tells the admin socket, with a refusal and without")
    func socket() {
        for refusal in [nil, "x.yaml:1:2: wrong"] {
            var record = ReloadRecord(configuration: "a", count: 1, refusal: refusal)
            record.socket = "/run/countersign/admin.sock"
            #expect(ReloadRecord(record.text) == record)
        }
        #expect(ReloadRecord("a\n1\nadmin unix:/s\nb\nc\n") == nil)
    }

    @Test("line breaks in a refusal add no lines to a reload record")
    func lineBreaks() {
        let record = ReloadRecord(configuration: "a", count: 1, refusal: "one\ntwo\r\u{0}three\u{7F}")
        #expect(ReloadRecord(record.text)?.refusal == "one two  three ")
    }

    @Test(
        "a truncated or foreign file is not a reload record",
        arguments: ["", "a", "a\n", "a\n1", "a\nx\n", "a\n1\nb\nc\n"])
    func damaged(_ text: String) {
        #expect(ReloadRecord(text) == nil)
    }
}
