// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import TestSupport

/// Waits for a change by another process: a line of its log, its answer, its end, a file. Returns false after five
/// minutes.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
    try await TestSupport.eventually(condition)
}

/// Repeats traffic, round after round, until the awaited event has happened.
func goingOn(
    until condition: () async throws -> Bool, _ round: (Int) async throws -> Void
) async rethrows -> Bool {
    try await TestSupport.goingOn(until: condition, round)
}

/// Runs blocking work on a thread of its own. The calling task waits without blocking a thread of the tests' pool,
/// which has only one thread per core.
func offPool<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        inBackground { continuation.resume(returning: work()) }
    }
}

/// Runs blocking work that may throw on a thread of its own.
func offPool<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    let result: Result<Value, any Error> = await offPool { Result { try work() } }
    return try result.get()
}

/// Limits the number of scenarios that run at once: Swift Testing starts all tests together, and on two cores every
/// daemon would then wait for every other.
actor Slots {
    private static let shared = Slots(free: 4)

    private var free: Int
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(free: Int) { self.free = free }

    /// Waits for a slot.
    private func take() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiters.append($0) }
        }
    }

    /// Gives it back.
    private func give() {
        if waiters.isEmpty {
            free += 1
        } else {
            waiters.removeFirst().resume()
        }
    }

    /// Runs a scenario in a slot.
    static func run<Value>(_ scenario: () async throws -> Value) async throws -> Value {
        await shared.take()
        do {
            let value = try await scenario()
            await shared.give()
            return value
        } catch {
            await shared.give()
            throw error
        }
    }
}
