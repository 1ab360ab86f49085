// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Unique number of a handler's registration, so that registrations never share sessions.
package struct RegistrationNumber: Sendable, Hashable, CustomStringConvertible {
    private static let last = Atomic<UInt64>(0)

    private let value: UInt64

    /// Creates a number that no other registration has.
    package init() { value = Self.last.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Number after a character that no credential's name has.
    package var description: String { "#\(value)" }
}

/// Caller of the program's own challenge handlers, with a time limit for each call.
package protocol HandlerCaller: Sendable {
    /// Returns the result of `body`, or throws its error, or a `LoginFailure` after the time limit.
    ///
    /// `challenge` names the handler.
    func run<Value: Sendable>(
        _ challenge: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value
}

extension HandlerCaller {
    /// Calls `body` for a login, and turns every error into a `LoginFailure`.
    ///
    /// For any other error only the type is reported, because a description could contain anything, even a secret.
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

/// Caller of this module's own handlers, which wait only for the server.
struct DirectCaller: HandlerCaller {
    func run<Value: Sendable>(
        _ challenge: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await body()
    }
}
