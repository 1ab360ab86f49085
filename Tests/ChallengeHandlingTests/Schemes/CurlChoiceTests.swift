// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Choice of a scheme compared with curl's")
struct CurlChoiceTests {
    @Test(
        "the chosen scheme does not depend on the number of challenge fields", arguments: JudgeTable("curl-choice").rows
    )
    func same(row: [String]) async throws {
        let (offered, expected) = (row[1].split(separator: " | "), row[2])
        let url = try #require(WebURL("http://127.0.0.1/\(row[0])"))
        var fields = HTTPFields()
        for value in offered { fields.append(HTTPField(name: .wwwAuthenticate, value: String(value))) }
        let plan = SchemePlan(
            name: "corp", schemes: [DigestScheme(digests: NoDigests()), NTLMScheme(isSupported: true), BasicScheme()],
            key: LatchKey(origin: url.origin, challenge: "corp", credential: "ann"), address: url)
        let session = try await LoginRig([], credentials: [.ann]).logIn(
            SchemeLogin(plan, challenge: ExaminedResponse(status: 401, fields: fields, url: url)))
        let isBasic = session.fields.first?.value.revealText().hasPrefix("Basic ") == true
        let chosen = session.connection != nil ? "ntlm" : session.signer != nil ? "digest" : isBasic ? "basic" : ""
        #expect(chosen == expected)
    }
}
