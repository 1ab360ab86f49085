// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("What MobileFirst has sent again")
struct MobileFirstRepetitionTests {
    private static let quick: [ScriptedStep] = [.preauthorize(), .authorization, .token]

    @Test("a client that the server forgot registers again, once, and asks before it answers")
    func forgotten() async throws {
        let world = World(.challenged() + [RejectionTests.answered.forgotten] + .challenged() + .granted)
        _ = try await world.win(try Bank.login())
        #expect(world.latches.all.isEmpty)
    }

    @Test("a server that forgets for ever is left", arguments: [false, true])
    func alwaysForgotten(atToken: Bool) async throws {
        let run: [ScriptedStep] =
            atToken
            ? [.register, .preauthorize(), .authorization, .token.forgotten] : [.register, .preauthorize().forgotten]
        let world = World(run + run)
        let failure = await world.lose(try Bank.login())
        #expect(failure.isUnknown && failure.detail.contains("does not know the client"))
        #expect(world.store.names.isEmpty)
    }

    @Test("a conflict has the same request sent again, with its answer")
    func conflict() async throws {
        let answered = RejectionTests.answered
        let steps: [ScriptedStep] =
            [.register.conflicting] + .challenged()
            + [answered.conflicting, answered.conflicting, answered.conflicting, answered, .authorization, .token]
        _ = try await World(steps).win(try Bank.login())
    }

    @Test("after seven conflicts that were sent again it ends, and nothing latches")
    func conflictsForEver() async throws {
        let world = World(.challenged() + Array(repeating: RejectionTests.answered.conflicting, count: 8))
        let failure = await world.lose(try Bank.login())
        #expect(failure.isUnknown && failure.detail.contains("conflict") && world.latches.all.isEmpty)
    }

    @Test("logins of one client take turns: the second does not answer while the first does")
    func turns() async throws {
        let client = try Bank.client()
        let world = World(.challenged() + .granted + Self.quick)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for scope in [["PinCodeAttempts"], ["PinCodeAttempts", "Other"]] {
                group.addTask {
                    _ = try await client.login(scope: scope, handlers: [try Bank.pin()]).win(world.conversation)
                }
            }
            try await group.waitForAll()
        }
        #expect(world.requests.missing.isEmpty)
    }

    @Test("a turn ends with a failure too")
    func turnAfterFailure() async throws {
        let client = try Bank.client()
        let login = client.login(scope: [], handlers: [])
        _ = await World([.register.replying(500)]).lose(login)
        _ = try await World([.register] + Self.quick).win(login)
    }

    @Test("logging out of a check names it, with an assertion that holds no code")
    func logout() async throws {
        let client = try Bank.client()
        try await client.logOut(of: "PinCodeAttempts", World().conversation)
        _ = try await World([.register] + Self.quick).win(client.login(scope: [], handlers: []))
        let logout = ScriptedStep(
            .post, "\(Bank.api)/preauth/v1/logout", .success(SideResponse(status: 200)),
            where: { $0.form("security_check") == "PinCodeAttempts" })
        let world = World([logout, logout.replying(403), logout.forgotten])
        try await client.logOut(of: "PinCodeAttempts", world.conversation)
        await #expect(throws: LoginFailure.self) { try await client.logOut(of: "PinCodeAttempts", world.conversation) }
        try await client.logOut(of: "PinCodeAttempts", world.conversation)
        let assertion = try #require(world.requests.sent[0].form("client_assertion")?.split(separator: "."))
        #expect(JSONValue(parsing: Base64.decode(assertion[1]) ?? [])?["jti"] == JSONValue.null)
        // The server forgot the client, so the next login registers.
        _ = try await World([.register] + Self.quick).win(client.login(scope: [], handlers: []))
    }
}
