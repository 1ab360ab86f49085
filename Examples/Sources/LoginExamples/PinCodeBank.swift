// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeClient
public import ChallengeHandling

/// IBM's sample "PIN code": asks a person for the PIN of the bank's security check, as often as the server lets him try.
public struct PinCodeHandler: SecurityCheckChallengeHandler {
    /// The check's name at the server.
    public let securityCheck = "PinCodeAttempts"
    private let ask: @Sendable (_ prompt: String) async -> String?

    /// A handler that asks by `ask`, which returns `nil` where the person gives up.
    public init(ask: @escaping @Sendable (_ prompt: String) async -> String?) { self.ask = ask }

    /// Called again, with the server's message, for as long as the PIN is wrong.
    public func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        var prompt = challenge.value["errorMsg"]?.stringValue ?? "This data requires a PIN code."
        if case .count(let left) = challenge.remainingAttempts { prompt += " Remaining attempts: \(left)." }
        guard let pin = await ask(prompt) else { return .cancel(reason: "No PIN was entered.") }
        return .submitChallengeAnswer(["pin": .string(pin)])
    }
}

/// The balance of the bank's account. The PIN is asked for on the way, where the server wants it.
public func balance(by client: ChallengeClient, at address: String) async throws -> String {
    try await client.send(to: address).text(upTo: 1024)
}
