// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@Suite("Bearer in a list of schemes")
struct BearerSchemeTests {
    private static let url = WebURL(origin: Origin(scheme: .https, host: "h"), path: "/a")
    private static let key = LatchKey(origin: url.origin, challenge: "api", credential: "api-client")

    /// Gives a token for the scope that is asked for.
    private struct Tokens: SessionLogin {
        let scope: Scope

        func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
            Session(fields: [InjectedField(name: .authorization, value: Secret("Bearer for:\(scope)"))])
        }
    }

    private static func plan(realm: String? = nil) -> SchemePlan {
        SchemePlan(
            name: "api", schemes: [BearerScheme { Tokens(scope: $0.scope) }, BasicScheme()], realm: realm, key: key,
            address: url)
    }

    private func response(_ status: Int, _ values: [String]) -> ExaminedResponse {
        var fields = HTTPFields()
        for value in values { fields.append(HTTPField(name: .wwwAuthenticate, value: value)) }
        return ExaminedResponse(status: status, fields: fields, url: Self.url)
    }

    @Test("Bearer is used first if both schemes are offered, and another if only that is")
    func preference() async throws {
        let rig = LoginRig(credentials: [TokenScript.client])
        let both = response(401, ["Basic realm=\"r\"", "Bearer"])
        let token = try await rig.logIn(SchemeLogin(Self.plan(), challenge: both, scope: Scope(text: "read")))
        #expect(token.fields.map(\.value) == [Secret("Bearer for:read")] && token.isVerified)
        let basic = try await rig.logIn(SchemeLogin(Self.plan(), challenge: response(401, ["Basic realm=\"r\""])))
        #expect(basic.fields.first?.value.revealText().hasPrefix("Basic ") == true && !basic.isVerified)
    }

    @Test(
        "Bearer challenges if a token is missing or invalid, and asks for more scope if it is too small",
        arguments: [
            (401, "Bearer", false, .challenged()), (401, "Bearer error=\"invalid_token\"", true, .challenged()),
            (401, "Bearer error=\"invalid_request\"", true, .pass), (403, "Bearer", true, .pass),
            (403, "Bearer error=\"insufficient_scope\", scope=\"a b\"", true, .challenged(scope: ["a", "b"])),
            // Without a session, 403 was said to somebody else.
            (403, "Bearer error=\"insufficient_scope\", scope=\"a b\"", false, .pass),
            (401, "Basic realm=\"r\"", false, .challenged()), (403, "Basic realm=\"r\"", true, .pass),
        ] as [(Int, String, Bool, Challenge)])
    func challenges(status: Int, value: String, hasSession: Bool, challenge: Challenge) {
        let found = SchemeDetector(Self.plan()).examine(response(status, [value]), hasSession: hasSession)
        #expect(found == challenge)
    }

    @Test("a Bearer challenge of another realm is ignored")
    func realm() {
        let detector = SchemeDetector(Self.plan(realm: "Here"))
        #expect(detector.examine(response(401, ["Bearer realm=\"There\""]), hasSession: false) == .pass)
        #expect(detector.examine(response(401, ["Bearer realm=\"Here\""]), hasSession: false) == .challenged())
    }

    @Test("a larger scope that a 403 names is requested")
    func scope() async throws {
        let rig = LoginRig(credentials: [TokenScript.client])
        let small = response(403, ["Bearer error=\"insufficient_scope\", scope=\"write\""])
        let token = try await rig.logIn(SchemeLogin(Self.plan(), challenge: small, scope: Scope(text: "read write")))
        #expect(token.fields.map(\.value) == [Secret("Bearer for:read write")])
    }
}
