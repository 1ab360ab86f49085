// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Tells one registration of a handler from every other, so that nobody has what another has won.
package struct RegistrationNumber: Sendable, Hashable, CustomStringConvertible {
    private static let last = Atomic<UInt64>(0)

    private let value: UInt64

    /// A number that no other registration has.
    package init() { value = Self.last.wrappingAdd(1, ordering: .relaxed).newValue }

    /// The number behind a sign that no credential's name has.
    package var description: String { "#\(value)" }
}

/// Calls the challenge handlers that a program has written itself, each for a limited time.
package protocol HandlerCaller: Sendable {
    /// What `body` returns or throws, or a `LoginFailure` where that takes too long. `challenge` names the handler.
    func run<Value: Sendable>(
        _ challenge: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value
}

extension HandlerCaller {
    /// The same for a login. What is thrown ends it: a `LoginFailure` as it is, and of anything else only the type is told,
    /// as a description could hold anything, a secret too.
    func ask<Value: Sendable>(
        _ challenge: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws(LoginFailure) -> Value {
        do {
            return try await run(challenge, body)
        } catch let failure as LoginFailure {
            throw failure
        } catch {
            throw LoginFailure(
                .failed, challenge: challenge,
                detail: "The challenge handler of \"\(challenge)\" failed: \(type(of: error)).")
        }
    }
}

/// Calls the handlers of this module, which wait for nobody but the server.
struct DirectCaller: HandlerCaller {
    func run<Value: Sendable>(
        _ challenge: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await body()
    }
}
