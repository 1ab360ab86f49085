// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Chooses among challenge handlers by location: the most specific pattern that covers an address wins, and of the handlers
/// there the earliest registered that can handle the challenge.
///
/// ```swift
/// let dispatcher = try DispatchChallengeHandler()
///     .register(ledger, at: "ledger.example.com/*")
///     .register(everything, at: "*.example.com/*")
/// ```
///
/// A more specific pattern hides less specific ones altogether. See `LocationPattern` for how patterns are written.
///
/// A dispatcher may be registered in another one, in a circle even: none asks itself.
public final class DispatchChallengeHandler: ChallengeHandler {
    /// A handler at a pattern.
    package struct Registration: Sendable {
        /// The handler.
        package let handler: any ChallengeHandler
        /// Which registration of it this is.
        package let number = RegistrationNumber()
    }

    private struct State {
        var table = LocationTable<Registration>()
        var version: UInt64 = 0
    }

    private let state = Mutex(State())

    /// A dispatcher without handlers.
    public init() {}

    /// Registers `handler` at `pattern`, behind those that are there; throws where the pattern is none, or could never match.
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

    /// Takes one registration of `handler` at exactly this pattern back; does nothing where there is none.
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

    /// Whether the look-up finds somebody.
    public func canHandle(_ request: ChallengeRequest) -> Bool { chosen(for: request) != nil }

    /// What the one that the look-up finds says, `nil` included; `nil` where it finds nobody.
    public func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
        try await chosen(for: request)?.handle(request.dispatched(by: self))
    }

    private func chosen(for request: ChallengeRequest) -> (any ChallengeHandler)? {
        if request.wasDispatched(by: self) { return nil }
        // Outside of the lock, for a handler may be a dispatcher, this one even.
        let standing = state.withLock { $0.table.match(request.location)?.handlers } ?? []
        let passed = request.dispatched(by: self)
        return standing.first { $0.handler.canHandle(passed) }?.handler
    }

    /// Every registration, the most specific pattern first.
    package var registrations: [(pattern: LocationPattern, registration: Registration)] {
        let table = state.withLock { $0.table }
        return table.entries.flatMap { entry in entry.handlers.map { (entry.pattern, $0) } }
    }

    /// Moves with every change.
    package var version: UInt64 { state.withLock { $0.version } }
}
