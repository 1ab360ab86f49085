// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import Learning

@Suite("Configuration blocks")
struct ConfigurationBlockTests {
    @Test(
        "a value of a server is quoted in a configuration if YAML or the program reads it otherwise",
        arguments: [
            ("/admin/", "/admin/"), ("/doku.php?id=start", "\"/doku.php?id=start\""), ("a: b", "\"a: b\""),
            ("a # b", "\"a # b\""), ("\"", "\"\\\"\""), ("${HOME}", "\"$${HOME}\""), ("$${X}", "\"$$${X}\""),
        ])
    func scalars(_ text: String, _ written: String) {
        #expect(ConfigurationLine.scalar(text) == written)
    }

    @Test("a block has a comment for each line that is not obvious, and no line breaks of a server")
    func lines() throws {
        let url = try #require(WebURL("https://wiki.example.com/"))
        let block = ConfigurationBlock(
            name: "wiki", url: url, challenge: [ConfigurationLine("gateway: form", "a\nb")],
            fields: ["username", "password"])
        #expect(
            block.lines() == [
                "listeners:",
                "  - address: 127.0.0.1:8080         # address that programs on this machine use",
                "    upstream: wiki", "",
                "upstreams:", "  wiki:",
                "    url: https://wiki.example.com/  # server that was learned", "",
                "challenges:", "  - name: wiki",
                "    upstream: wiki                  # every address of the server",
                "    gateway: form                   # a b",
                "    credential: wiki                # fields: username, password",
            ])
        #expect(block.lines(listener: nil).first == "upstreams:")
    }
}
