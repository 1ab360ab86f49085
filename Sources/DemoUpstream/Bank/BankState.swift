// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// The memory of the bank.
struct BankState {
    /// A grant code, good once and for one client.
    struct Code {
        var client: String
        var scope: String
    }

    /// An access token.
    struct Token {
        var scope: Set<String>
        var end: Int64
    }

    /// The registered clients, each with its state of the security check.
    var clients: [String: PinCheck] = [:]
    var codes: [String: Code] = [:]
    var tokens: [String: Token] = [:]

    /// Registers a client, and returns its name.
    mutating func register() -> String {
        let id = Samples.randomName()
        // A demonstration need not hold more.
        if clients.count > 10_000 { clients.removeAll() }
        clients[id] = PinCheck()
        return id
    }

    /// Makes a token for that scope, and returns it.
    mutating func issue(_ scope: String, seconds: Int64, now: Int64) -> String {
        let token = (0..<4).map { _ in Samples.randomName() }.joined(separator: ".")
        tokens = tokens.filter { now < $0.value.end }
        tokens[token] = Token(
            scope: Set(scope.split(separator: " ").map(String.init)).union(["RegisteredClient"]),
            end: now + seconds * 1000)
        return token
    }
}
