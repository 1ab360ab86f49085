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

    @Test("a handler is named, and needs no credential")
    func named() {
        let (settings, problems) = parse("handler: mine")
        #expect(settings?.challenges.map { $0.kind as? OwnHandlerSettings } == [OwnHandlerSettings("mine")])
        #expect(problems.isEmpty)
    }

    @Test("one that is not there is a problem, which says what is")
    func unknown() {
        #expect(
            parse("handler: mime").problems
                == ["there is no handler \"mime\" in this program; did you mean \"mine\"?"])
        let none = parse("handler: mine", handlers: []).problems
        #expect(none.count == 1 && none[0].contains("Countersign.main(handlers:)"))
    }

    @Test(
        "what is the handler's own affair is refused beside it",
        arguments: [
            "credential: c", "retry-rejected: 5m", "prove-at: /whoami", "login: at-start", "answer: { pin: x }",
        ])
    func refused(key: String) {
        #expect(parse("handler: mine, \(key)").settings == nil)
    }
}
