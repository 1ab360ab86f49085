// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@testable import Credentials

@Suite("Environment source")
struct EnvironmentSourceTests {
    private func fields(_ name: String, _ environment: [String: String]) throws -> [String: Secret]? {
        try EnvironmentSource(environment: environment).credential(named: name)?.fields
    }

    @Test("an environment variable holds the credential and field that its upper-case name states")
    func pin() throws {
        #expect(try fields("bank-pin", ["COUNTERSIGN_BANK_PIN__PIN": "1234"]) == ["pin": Secret("1234")])
        #expect(try fields("bank-pin", ["COUNTERSIGN_OTHER__PIN": "1234"]) == nil)
        #expect(try fields("bank-pin", ["BANK_PIN__PIN": "1234"]) == nil)
    }

    @Test("an environment variable names a field of several words with hyphens and with underscores")
    func severalWords() throws {
        let found = try fields("api.v2", ["COUNTERSIGN_API_V2__CLIENT_ID": "a", "COUNTERSIGN_API_V2__KEY": "b"])
        #expect(found == ["client-id": Secret("a"), "client_id": Secret("a"), "key": Secret("b")])
    }

    @Test("an environment variable belongs to one credential only")
    func oneName() throws {
        let environment = ["COUNTERSIGN_A__B__PIN": "1", "COUNTERSIGN_A___PIN": "2"]
        #expect(try fields("a", environment) == nil)
        #expect(try fields("a--b", environment) == ["pin": Secret("1")])
        #expect(try fields("a-", environment) == ["pin": Secret("2")])
    }

    @Test("environment variables have an underscore for each character but ASCII letters and digits")
    func signs() throws {
        #expect(try fields("größe:1", ["COUNTERSIGN_GR__E_1__PIN": "1"]) == ["pin": Secret("1")])
    }

    @Test("an empty environment variable counts as unset, and a value is used unchanged")
    func values() throws {
        #expect(try fields("a", ["COUNTERSIGN_A__PIN": ""]) == nil)
        #expect(try fields("a", ["COUNTERSIGN_A__PIN": " 1\n"]) == ["pin": Secret(" 1\n")])
    }
}
