// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import CountersignDaemon

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
