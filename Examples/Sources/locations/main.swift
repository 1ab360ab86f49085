// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Kaazing's dispatcher: handlers by location, Basic beside a scheme of one's own.

import ChallengeClient
import ChallengeHandling
import ClientExamples
import HTTPTypes
import Samples
import Secrets

/// Handler of the scheme `Ticket`.
final class TicketHandler: ChallengeHandler {
    func canHandle(_ request: ChallengeRequest) -> Bool { request.challenge.isScheme("Ticket") }

    func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
        // Once: a ticket that was refused would be refused again.
        request.isRepeated ? nil : ChallengeResponse(credentials: Secret("Ticket demo"))
    }
}

/// Returns the status of a request.
@MainActor
func status(_ path: String) async throws -> Int {
    try await client.send(to: "\(Sample.server)\(path)").status.code
}

let tickets = TicketHandler()
let basic = BasicChallengeHandler(FixedLogin(LoginCredentials(username: "ann", password: "demo")))
let dispatcher = DispatchChallengeHandler()
try dispatcher.register(tickets, at: "ws://127.0.0.1:*/ticket/*").register(basic, at: "127.0.0.1:*/basic/*")
let client = try ChallengeClient()
client.registerChallengeHandler(dispatcher)
Sample.check(try await status("/ticket/a") == 200, "the scheme of one's own, at its location")
Sample.check(try await status("/basic/a") == 200, "Basic, at its location")
Sample.check(try await status("/digest/a") == 401, "a location without a handler")
try dispatcher.unregister(tickets, at: "ws://127.0.0.1:*/ticket/*")
Sample.check(try await status("/ticket/b") == 401, "after unregister")
await client.shutdown()
