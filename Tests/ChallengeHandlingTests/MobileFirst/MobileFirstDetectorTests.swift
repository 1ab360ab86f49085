// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
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
            (401, ["Bearer error=\"other\""], .challenged()), (401, ["Bearer error=\"open"], .challenged()),
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

@Suite("Requests that MobileFirst has sent again")
struct MobileFirstRepetitionTests {
    private static let quick: [ScriptedStep] = [.preauthorize(), .authorization, .token]

    @Test("a client that the server forgot registers again, once, and asks before it answers")
    func forgotten() async throws {
        let rig = LoginRig(.challenged() + [RejectionTests.answered.forgotten] + .challenged() + .granted)
        _ = try await rig.logIn(try Bank.login())
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a server that always forgets the client is given up", arguments: [false, true])
    func alwaysForgotten(atToken: Bool) async throws {
        let run: [ScriptedStep] =
            atToken
            ? [.register, .preauthorize(), .authorization, .token.forgotten] : [.register, .preauthorize().forgotten]
        let rig = LoginRig(run + run)
        let failure = await rig.lose(try Bank.login())
        #expect(failure.isUnknown && failure.detail.contains("does not know the client"))
        #expect(rig.store.names.isEmpty)
    }

    @Test("a conflict has the same request sent again, with its answer")
    func conflict() async throws {
        let answered = RejectionTests.answered
        let steps: [ScriptedStep] =
            [.register.conflicting] + .challenged()
            + [answered.conflicting, answered.conflicting, answered.conflicting, answered, .authorization, .token]
        _ = try await LoginRig(steps).logIn(try Bank.login())
    }

    @Test("after seven conflicts that were sent again it ends, and nothing latches")
    func conflictsForEver() async throws {
        let rig = LoginRig(.challenged() + Array(repeating: RejectionTests.answered.conflicting, count: 8))
        let failure = await rig.lose(try Bank.login())
        #expect(failure.isUnknown && failure.detail.contains("conflict") && rig.latches.all.isEmpty)
    }

    @Test("logins of one client take turns: the second does not answer while the first does")
    func turns() async throws {
        let client = try Bank.client()
        let rig = LoginRig(.challenged() + .granted + Self.quick)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for scope in [["PinCodeAttempts"], ["PinCodeAttempts", "Other"]] {
                group.addTask {
                    _ = try await client.login(scope: scope, handlers: [try Bank.pin()]).logIn(rig.conversation)
                }
            }
            try await group.waitForAll()
        }
        #expect(rig.requests.missing.isEmpty)
    }

    @Test("a turn ends with a failure too")
    func turnAfterFailure() async throws {
        let client = try Bank.client()
        let login = client.login(scope: [], handlers: [])
        _ = await LoginRig([.register.replying(500)]).lose(login)
        _ = try await LoginRig([.register] + Self.quick).logIn(login)
    }

    @Test("logging out of a check names it, with an assertion that holds no code")
    func logout() async throws {
        let client = try Bank.client()
        try await client.logOut(of: "PinCodeAttempts", LoginRig().conversation)
        _ = try await LoginRig([.register] + Self.quick).logIn(client.login(scope: [], handlers: []))
        let logout = ScriptedStep(
            .post, "\(Bank.api)/preauth/v1/logout", .success(SideResponse(status: 200)),
            where: { $0.form("security_check") == "PinCodeAttempts" })
        let rig = LoginRig([logout, logout.replying(403), logout.forgotten])
        try await client.logOut(of: "PinCodeAttempts", rig.conversation)
        await #expect(throws: LoginFailure.self) { try await client.logOut(of: "PinCodeAttempts", rig.conversation) }
        try await client.logOut(of: "PinCodeAttempts", rig.conversation)
        let assertion = try #require(rig.requests.sent[0].form("client_assertion")?.split(separator: "."))
        #expect(JSONValue(parsing: Base64.decode(assertion[1]) ?? [])?["jti"] == JSONValue.null)
        // The server forgot the client, so the next login registers.
        _ = try await LoginRig([.register] + Self.quick).logIn(client.login(scope: [], handlers: []))
    }
}
