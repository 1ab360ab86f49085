// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import TestSupport

/// Runs blocking work on a thread of its own and waits for it without blocking a thread of the tests' pool, which has
/// no more of them than the machine has cores.
func offPool<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        inBackground { continuation.resume(returning: work()) }
    }
}

/// The same for work that throws.
func offPool<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    let result: Result<Value, any Error> = await offPool { Result { try work() } }
    return try result.get()
}
