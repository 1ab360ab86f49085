// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Settings

@Suite("Advice on a mistake in the configuration")
struct SuggestionTests {
    @Test("a key that is shortened, cut short or half right is answered with the one that was meant")
    func suggestions() {
        let yaml = """
            listeners: [{ address: "127.0.0.1:80", upstream: a }]
            upstreams:
              a: { url: "https://a/", tls: { minimum: 1.1 }, mobilefirst: { app: x, platform: ios, version: "1" } }
            challenges:
              - name: f
                upstream: a
                gateway: form
                credential: c
                detect: { redirect: /login }
                failed: { status: 403, because: bad-password }
                login: { page: login, params: { u: "{username}" } }
            """
        let found = problems(yaml)
        for words in [
            "app: unknown key; did you mean \"application\"?", "redirect: unknown key; did you mean \"redirect-to\"?",
            "params: unknown key; did you mean \"parameters\"?", "did you mean \"wrong-password\"?",
            "page: is neither a path that begins with /, such as /login,",
        ] { #expect(found.contains { $0.hasSuffix(words) || $0.contains(words) }, "\(words) \(found)") }
        #expect(found.contains { $0.contains("\"1.1\" is not one of 1.2, 1.3") && !$0.contains("did you mean") })
    }

    @Test("a bracket that is not closed is reported with the place where it was opened")
    func unclosed() {
        let found = problems("upstreams:\n  a: { url: \"https://a/\", tls: { minimum: 1.2 }\nchallenges: []\n")
        #expect(found.count == 1 && found[0].contains("that begins at line 2, column 6"), "\(found)")
    }
}
