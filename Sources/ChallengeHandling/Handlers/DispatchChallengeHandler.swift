// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Dispatcher of challenges to handlers by location pattern.
///
/// The most specific pattern that covers an address is selected, and of its handlers the earliest registered that can
/// handle the challenge.
///
/// ```swift
/// let dispatcher = try DispatchChallengeHandler()
///     .register(ledger, at: "ledger.example.com/*")
///     .register(everything, at: "*.example.com/*")
/// ```
///
/// A more specific pattern hides less specific ones completely. `LocationPattern` describes the syntax of patterns.
///
/// A dispatcher may be registered in another one, even in a cycle: it does not call itself.
public final class DispatchChallengeHandler: ChallengeHandler {
    /// Handler at a pattern.
    package struct Registration: Sendable {
        /// The handler.
        package let handler: any ChallengeHandler
        /// Number of this registration.
        package let number = RegistrationNumber()
    }

    private struct State {
        var table = LocationTable<Registration>()
        var version: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Creates a dispatcher without handlers.
    public init() {}

    /// True: a handler whose answers authenticate connections may be registered at any time.
    public var bindsConnections: Bool { true }

    /// Registers `handler` at `pattern`, after existing ones; throws if the pattern is invalid or could never match.
    @discardableResult
    public func register(
        _ handler: any ChallengeHandler, at pattern: String
    ) throws(LocationError) -> DispatchChallengeHandler {
        let pattern = try LocationPattern(pattern)
        state.withLock { state in
            state.table.register(Registration(handler: handler), at: pattern)
            state.version += 1
        }
        return self
    }

    /// Removes one registration of `handler` at exactly this pattern, if there is one.
    @discardableResult
    public func unregister(
        _ handler: any ChallengeHandler, at pattern: String
    ) throws(LocationError) -> DispatchChallengeHandler {
        let pattern = try LocationPattern(pattern)
        state.withLock { state in
            state.table.unregister(at: pattern) { $0.handler === handler }
            state.version += 1
        }
        return self
    }

    /// Returns true if a registered handler can answer the request.
    public func canHandle(_ request: ChallengeRequest) -> Bool { chosen(for: request) != nil }

    /// Returns the answer of the selected handler; nil if no handler matches.
    public func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
        try await chosen(for: request)?.handle(request.dispatched(by: self))
    }

    private func chosen(for request: ChallengeRequest) -> (any ChallengeHandler)? {
        if request.wasDispatched(by: self) { return nil }
        // Outside the lock, because a handler may be a dispatcher, even this one.
        let authenticator = state.withLock { $0.table.match(request.location)?.handlers } ?? []
        let passed = request.dispatched(by: self)
        return authenticator.first { $0.handler.canHandle(passed) }?.handler
    }

    /// All registrations, the most specific pattern first.
    package var registrations: [(pattern: LocationPattern, registration: Registration)] {
        let table = state.withLock { $0.table }
        return table.entries.flatMap { entry in entry.handlers.map { (entry.pattern, $0) } }
    }

    /// Number that grows with every change.
    package var version: UInt64 { state.withLock { $0.version } }
}
