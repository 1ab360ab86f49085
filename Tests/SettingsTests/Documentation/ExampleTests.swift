// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import SettingsReading
import Testing

@testable import Settings

@Suite("Examples in the documentation")
struct ExampleTests {
    @Test(
        "a whole configuration in the documentation has no problems, and a part of one has no errors",
        arguments: try Page.all())
    func examples(page: Page) { expectNoProblems(in: page) }

    @Test(
        "the configuration of each application in Tests/Applications has no problems",
        arguments: try Page.applications())
    func applications(page: Page) {
        #expect(page.configurations.count == 1)
        expectNoProblems(in: page)
    }

    private func expectNoProblems(in page: Page) {
        for (line, text) in page.configurations {
            let isWhole = has("listeners", text) && has("upstreams", text)
            let whole = isWhole ? text : completed(text)
            let problems = Settings.parse(
                Array(whole.utf8), file: "\(page.path):\(line)",
                environment: ["CREDENTIALS_DIRECTORY": "/run/credentials/x"]
            ).problems
            // The files that an example names are not here.
            let told = problems.filter { isWhole && !$0.keyPath.contains(".tls.") || $0.severity == .error }
            #expect(told.map(\.description) == [])
        }
    }

    @Test("each recipe of docs/challenges shows a whole configuration", arguments: try recipes())
    func recipe(page: Page) {
        #expect(page.configurations.contains { has("listeners", $0.text) && has("challenges", $0.text) })
    }

    private static func recipes() throws -> [Page] { try Page.all().filter { $0.path.hasPrefix("docs/challenges/") } }

    private func has(_ key: String, _ text: String) -> Bool {
        text.split(separator: "\n").contains { $0.hasPrefix("\(key):") }
    }

    /// The part with what it leaves out.
    private func completed(_ part: String) -> String {
        var whole = part
        if !has("upstreams", part) {
            whole += "\nupstreams: { bank: { url: \"https://bank.example.com/\" } }"
        }
        if !has("listeners", part) { whole += "\nlisteners: [{ address: 127.0.0.1:8080, upstream: bank }]" }
        return whole + "\n"
    }
}
