// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import TestSupport
import Testing

@Suite("Cookies go back as Chromium sends them")
struct CookieJudgeTests {
    @Test("a cookie is sent to the same paths, byte by byte", arguments: JudgeTable("chromium-cookies").rows)
    func judged(_ row: [String]) throws {
        let now: Int64 = 1_795_276_800_000
        var jar = CookieJar()
        let line = try #require(JudgeTable.bytes(row[0]))
        jar.store(line, from: try #require(WebURL("http://c.localhost/app/set")), now: now)
        for (path, expected) in zip(["/app/home", "/", "/app/deep/x"], row.dropFirst()) {
            let url = try #require(WebURL("http://c.localhost\(path)"))
            let sent = jar.header(for: url, now: now)?.revealBytes()
            #expect(sent == (expected == "-" ? nil : JudgeTable.bytes(expected)), "\(row[0]) at \(path)")
        }
    }
}
