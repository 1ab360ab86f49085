// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeClient
public import ChallengeHandling

/// IBM's sample "PIN code": asks a person for the PIN of the bank's security check, as often as the server allows.
public struct PinCodeHandler: SecurityCheckChallengeHandler {
    /// Name of the security check at the server.
    public let securityCheck = "PinCodeAttempts"
    private let ask: @Sendable (_ prompt: String) async -> String?

    /// Creates a handler that asks by `ask`, which returns `nil` if the person gives up.
    public init(ask: @escaping @Sendable (_ prompt: String) async -> String?) { self.ask = ask }

    /// Asks for the PIN; called again, with the server's message, while the PIN is wrong.
    public func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        var prompt = challenge.value["errorMsg"]?.stringValue ?? "This data requires a PIN code."
        if case .count(let left) = challenge.remainingAttempts { prompt += " Remaining attempts: \(left)." }
        guard let pin = await ask(prompt) else { return .cancel(reason: "No PIN was entered.") }
        return .submitChallengeAnswer(["pin": .string(pin)])
    }
}

/// Returns the balance of the bank's account. The client's handlers are asked for the PIN if the server demands it.
public func balance(by client: ChallengeClient, at address: String) async throws -> String {
    try await client.send(to: address).text(upTo: 1024)
}
