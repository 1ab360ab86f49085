// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// The PIN sample of MobileFirst 8.0: attempts, the server's message, an account that is blocked, and a dialog with buttons.

import ChallengeClient
import ChallengeHandling
import ClientExamples
import Credentials
import Samples

/// Returns a client of the demonstration's bank.
@MainActor
func makeClient() throws -> ChallengeClient {
    guard let api = WebURL("\(Sample.server)/mfp/api") else { throw ClientError(.badRequest, detail: "no address") }
    var configuration = ClientConfiguration()
    configuration.mobileFirst = MobileFirstServer(
        MobileFirstConfiguration(api: api, application: "com.sample.pincode", platform: .ios, version: "1.0"),
        keys: RSASigningKeys())
    return try ChallengeClient(configuration)
}

let address = "\(Sample.server)/mfp/api/adapters/bank/balance"

// A wrong PIN, then the right one, typed into a dialog and answered by its button.
var prompts: [String] = []
let dialog = PinDialog { prompts.append($0) }
let client = try makeClient()
try client.registerChallengeHandler(PinCodeHandler { await dialog.ask($0) })
var hasEnded = false
let request = Task {
    defer { hasEnded = true }
    return try await balance(by: client, at: address)
}
for (answered, pin) in ["1111", "1234"].enumerated() {
    while prompts.count <= answered, !hasEnded { try await Task.sleep(for: .milliseconds(5)) }
    dialog.okTapped(pin)
}
let text = try await request.value
Sample.check(text.contains("balance"), "the right PIN gives the balance")
Sample.check(
    prompts.count == 2 && prompts[1].contains("Remaining attempts: 2."), "the wrong PIN is told: \(prompts.last ?? "")")
await client.shutdown()

// Three wrong PINs block the account.
let guesser = try makeClient()
try guesser.registerChallengeHandler(
    PinCodeHandler { prompt in prompt.contains(" 3.") ? "1" : prompt.contains(" 2.") ? "2" : "3" })
let blocked = await Sample.failure { _ = try await balance(by: guesser, at: address) }
Sample.check(
    blocked?.loginFailure?.code == .accountLocked, "three wrong PINs: \(blocked?.errorDescription ?? "served")")
await guesser.shutdown()

// Nobody answers: nothing is sent, and the request fails.
let nobody = try makeClient()
try nobody.registerChallengeHandler(PinCodeHandler { _ in nil })
let cancelled = await Sample.failure { _ = try await balance(by: nobody, at: address) }
Sample.check(cancelled?.detail == "No PIN was entered.", "cancelled: \(cancelled?.detail ?? "served")")
await nobody.shutdown()
