// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("docs/getting-started.md")
struct GettingStartedTests {
    @Test("leads from the package to the first request through a login, under a real systemd")
    func steps() async throws {
        let page = Repository.text(of: "docs/getting-started.md")
        let configurations = page.split(separator: "```yaml\n").dropFirst().compactMap {
            $0.split(separator: "```").first
        }
        .map { String($0.replacing("https://wiki.example.com/", with: "http://127.0.0.1:8081/basic/")) }
        try #require(configurations.count == 2)
        var scenario = SystemdScenario()
        scenario.package = (try await DebianPackage(), "/srv/countersign.deb")
        scenario.configuration = ""
        scenario.dropIn = nil
        scenario.files = ["/srv/first.yaml": configurations[0], "/srv/second.yaml": configurations[1]]
        // Its own commands, with what a person would type on their standard input.
        try await scenario.run("getting-started")
    }
}
