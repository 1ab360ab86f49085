// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SettingsReading
import Testing

@testable import Settings

@Suite("Handlers that the program brings along")
struct OwnHandlerTests {
    private func parse(
        _ challenge: String, handlers: Set<String> = ["mine"]
    ) -> (settings: Settings?, problems: [String]) {
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: a }]
            upstreams: { a: { url: "http://127.0.0.1:1/" } }
            challenges: [{ name: x, upstream: a, \(challenge) }]
            """
        let (settings, problems) = Settings.parse(
            Array(text.utf8), file: "f", environment: [:], handlers: handlers)
        return (settings, problems.map(\.message))
    }

    @Test("a challenge with handler needs a name and no credential")
    func named() {
        let (settings, problems) = parse("handler: mine")
        #expect(settings?.challenges.map { $0.kind as? OwnHandlerSettings } == [OwnHandlerSettings("mine")])
        #expect(problems.isEmpty)
    }

    @Test("an unknown handler is a problem that names the known ones")
    func unknown() {
        #expect(
            parse("handler: mime").problems
                == ["there is no handler \"mime\" in this program; did you mean \"mine\"?"])
        let none = parse("handler: mine", handlers: []).problems
        #expect(none.count == 1 && none[0].contains("Countersign.main(handlers:)"))
    }

    @Test(
        "keys that a handler decides itself are refused in its challenge",
        arguments: [
            "credential: c", "retry-rejected: 5m", "prove-at: /whoami", "login: at-start", "answer: { pin: x }",
        ])
    func refused(key: String) {
        #expect(parse("handler: mine, \(key)").settings == nil)
    }
}
