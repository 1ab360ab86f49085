// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import Testing

@testable import CountersignDaemon

@Suite("The required fields of credentials")
struct NeededFieldsTests {
    @Test("the required fields of a credential are those that its challenges use, by kind")
    func kinds() throws {
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: bank }]
            upstreams: { bank: { url: "https://bank.example.com/" } }
            challenges:
              - { name: a, upstream: bank, inject: { X-Key: "{key}" }, credential: one }
              - { name: b, at: bank.example.com/b/*, inject: { X-Pair: "{password}-{username}" }, credential: two }
              - { name: c, at: bank.example.com/c/*, scheme: basic, credential: { by-user: { "1001": three, "*": four } } }
              - name: d
                at: bank.example.com/d/*
                scheme: bearer
                credential: five
                token: { url: "https://id.example.com/token", grant: client-credentials }
              - { name: e, at: bank.example.com/e/*, gateway: webseal, credential: one }
            """
        let settings = try #require(Settings.parse(Array(text.utf8), file: "f", environment: [:]).settings)
        #expect(
            settings.neededFields == [
                "one": ["key", "username", "password"], "two": ["username", "password"],
                "three": ["username", "password"], "four": ["username", "password"],
                "five": ["client-id", "client-secret"],
            ])
    }
}
