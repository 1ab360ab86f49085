// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import FakeServers
import HTTPTypes
import LoginExamples
import Secrets
import TestSupport
import Testing

@Suite("The authorization manager", .timeLimit(.minutes(10)))
struct AuthorizationTests {
    @Test("a token is had for a scope, held, and taken by the resource")
    func token() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(PinCodeHandler { _ in "1234" })
            let token = try await demo.client.obtainAccessToken(scope: "accessRestricted")
            let again = try await demo.client.obtainAccessToken(scope: "accessRestricted")
            #expect(token.value == again.value)
            #expect(token.scope.words.contains("accessRestricted"))
            #expect((token.expiresAt ?? 0) > 0)
            let response = try await demo.client.send(
                to: demo.balance, fields: [.authorization: "Bearer \(token.value.revealText())"])
            #expect(response.status == .ok)
        }
    }

    @Test("a login with credentials needs no handler and asks for nothing")
    func login() async throws {
        try await withDemo { demo in
            try await demo.client.login(securityCheck: "PinCodeAttempts", credentials: ["pin": "1234"])
            #expect(demo.upstream.recorder.record.answerCount() == 1)
            // The check has passed, so its resources do not challenge.
            #expect(try await balance(by: demo.client, at: demo.balance).contains("balance"))
        }
    }

    @Test("wrong credentials of a login fail it, and are not sent again")
    func wrongLogin() async throws {
        try await withDemo { demo in
            for code in [LoginFailure.Code.rejected, .latched] {
                let error = try await clientError {
                    try await demo.client.login(securityCheck: "PinCodeAttempts", credentials: ["pin": "1"])
                }
                #expect(error.loginFailure?.code == code)
            }
            #expect(demo.upstream.recorder.record.answerCount() == 1)
        }
    }

    @Test("where the credentials of a login are wrong, the handler is asked")
    func handlerAfterLogin() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(PinCodeHandler { _ in "1234" })
            try await demo.client.login(securityCheck: "PinCodeAttempts", credentials: ["pin": "1"])
            #expect(demo.upstream.recorder.record.answerCount() == 2)
        }
    }

    @Test("a login validates anew what holds, and a wrong one loses it")
    func revalidation() async throws {
        try await withDemo { demo in
            try await demo.client.login(securityCheck: "PinCodeAttempts", credentials: ["pin": "1234"])
            let error = try await clientError {
                try await demo.client.login(securityCheck: "PinCodeAttempts", credentials: ["pin": "1"])
            }
            #expect(error.loginFailure?.code == .rejected)
            let later = try await clientError { try await balance(by: demo.client, at: demo.balance) }
            #expect(later.loginFailure != nil)
        }
    }

    @Test("a second login while one is under way is refused")
    func inProcess() async throws {
        try await withDemo { demo in
            let asked = try demo.registerSilentHandler()
            let first = Task { try await balance(by: demo.client, at: demo.balance) }
            while asked.count == 0 { await Task.yield() }
            let error = try await clientError {
                try await demo.client.login(securityCheck: "PinCodeAttempts", credentials: ["pin": "1234"])
            }
            #expect(error.kind == .inProcess)
            first.cancel()
        }
    }

    @Test("after a logout the check is to be passed again")
    func logout() async throws {
        try await withDemo { demo in
            let notes = Notes()
            try demo.client.registerChallengeHandler(
                PinCodeHandler { _ in
                    notes.add("asked")
                    return "1234"
                })
            _ = try await balance(by: demo.client, at: demo.balance)
            try await demo.client.logout(securityCheck: "PinCodeAttempts")
            #expect(demo.upstream.recorder.record.logouts == ["PinCodeAttempts"])
            _ = try await balance(by: demo.client, at: demo.balance)
            #expect(notes.count == 2)
        }
    }

    @Test("a logout that the server does not answer ends with the client")
    func unansweredLogout() async throws {
        try await withDemo { demo in
            try await demo.client.login(securityCheck: "PinCodeAttempts", credentials: ["pin": "1234"])
            demo.upstream.override { request in
                guard request.path.hasSuffix("/logout") else { return nil }
                var response = FakeResponse(200)
                response.delivery.hangs = true
                return response
            }
            let logout = Task { try await demo.client.logout(securityCheck: "PinCodeAttempts") }
            #expect(
                await demo.upstream.recorder.waitUntil { $0.count("POST", "/mfp/api/preauth/v1/logout") == 1 })
            let shutdown = Task { await demo.client.shutdown() }
            let error = try await clientError { try await logout.value }
            #expect(error.kind == .shutDown)
            await shutdown.value
        }
    }

    @Test("a client without a server says so")
    func noServer() async throws {
        try await withDemo {
            $0.mobileFirst = nil
        } _: { demo in
            let ended = try await clientError { try await demo.client.obtainAccessToken() }
            #expect(ended.kind == .noServer)
        }
    }

    @Test("a wait for a token ends with the task and with the client")
    func waiting() async throws {
        try await withDemo { demo in
            let asked = try demo.registerSilentHandler()
            let first = Task { try await demo.client.obtainAccessToken(scope: "accessRestricted") }
            let second = Task { try await demo.client.obtainAccessToken(scope: "accessRestricted") }
            while asked.count == 0 { await Task.yield() }
            first.cancel()
            let ended2 = try await clientError { try await first.value }
            #expect(ended2.kind == .cancelled)
            await demo.client.shutdown()
            let ended3 = try await clientError { try await second.value }
            #expect(ended3.kind == .shutDown)
        }
    }
}
