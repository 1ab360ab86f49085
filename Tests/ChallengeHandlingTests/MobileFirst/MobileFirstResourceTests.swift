// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("Resources that MobileFirst protects")
struct MobileFirstResourceTests {
    @Test(
        "a response says what is wrong with the token",
        arguments: [
            (401, ["Bearer"], .tokenMissing), (401, ["bearer realm=\"x\""], .tokenMissing),
            (401, ["Bearer error=\"invalid_token\""], .tokenInvalid),
            (401, ["Basic realm=\"a, b\"", "Bearer"], .tokenMissing),
            (401, ["Basic realm=\"a, Bearer\""], .notAChallenge), (401, [], .notAChallenge),
            (401, ["Bearer error=\"other\""], .notAChallenge), (401, ["Bearer error=\"open"], .notAChallenge),
            (
                403, ["Bearer error=\"insufficient_scope\", scope=\"RegisteredClient scopeB scopeA\""],
                .insufficientScope(["RegisteredClient", "scopeA", "scopeB"])
            ),
            (403, ["Bearer scope=\"a\", error=insufficient_scope"], .insufficientScope(["a"])),
            (403, ["Bearer error=\"insufficient_scope\""], .notAChallenge), (403, ["Bearer"], .notAChallenge),
            (403, [], .notAChallenge), (200, ["Bearer"], .notAChallenge), (409, [], .notAChallenge),
        ] as [(Int, [String], ResourceVerdict)])
    func examine(status: Int, values: [String], verdict: ResourceVerdict) {
        var fields = HTTPFields()
        for value in values { fields.append(HTTPField(name: .wwwAuthenticate, value: value)) }
        #expect(MobileFirstResource.examine(status: status, fields: fields) == verdict)
    }

    @Test("409 is a conflict by its field, whatever its case and value")
    func conflict() throws {
        for name in ["MFP-Conflict", "mfp-conflict"] {
            let field = HTTPField(name: try #require(HTTPField.Name(name)), value: "")
            #expect(MobileFirstResource.examine(status: 409, fields: HTTPFields([field])) == .conflict)
            #expect(MobileFirstResource.examine(status: 200, fields: HTTPFields([field])) == .notAChallenge)
        }
    }
}
