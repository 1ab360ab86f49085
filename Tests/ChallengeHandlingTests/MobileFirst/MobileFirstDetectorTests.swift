// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("Resources that MobileFirst protects")
struct MobileFirstDetectorTests {
    private func examine(_ status: Int, _ fields: HTTPFields, hasSession: Bool = true) throws -> Challenge {
        let url = try #require(WebURL("https://bank.example/a"))
        return MobileFirstDetector().examine(
            ExaminedResponse(status: status, fields: fields, url: url), hasSession: hasSession)
    }

    @Test(
        "a MobileFirst response states the problem with the token, even if the request carried none",
        arguments: [
            (401, ["Bearer"], .challenged()), (401, ["bearer realm=\"x\""], .challenged()),
            (401, ["Bearer error=\"invalid_token\""], .challenged()),
            (401, ["Basic realm=\"a, b\"", "Bearer"], .challenged()),
            (401, ["Basic realm=\"a, Bearer\""], .pass), (401, [], .pass),
            (401, ["Bearer error=\"other\""], .pass), (401, ["Bearer error=\"open"], .pass),
            (
                403, ["Bearer error=\"insufficient_scope\", scope=\"RegisteredClient scopeB scopeA\""],
                .challenged(scope: ["RegisteredClient", "scopeA", "scopeB"])
            ),
            (403, ["Bearer scope=\"a\", error=insufficient_scope"], .challenged(scope: ["a"])),
            (403, ["Bearer error=\"insufficient_scope\""], .pass), (403, ["Bearer"], .pass),
            (403, [], .pass), (200, ["Bearer"], .pass), (409, [], .pass),
        ] as [(Int, [String], Challenge)])
    func examine(status: Int, values: [String], challenge: Challenge) throws {
        var fields = HTTPFields()
        for value in values { fields.append(HTTPField(name: .wwwAuthenticate, value: value)) }
        for hasSession in [false, true] {
            #expect(try examine(status, fields, hasSession: hasSession) == challenge)
        }
    }

    @Test("a 409 is a MobileFirst conflict by its field, whatever the field's case and value")
    func conflict() throws {
        for name in ["MFP-Conflict", "mfp-conflict"] {
            let field = HTTPField(name: try #require(HTTPField.Name(name)), value: "")
            #expect(try examine(409, HTTPFields([field])) == .replay)
            #expect(try examine(200, HTTPFields([field])) == .pass)
        }
    }
}
