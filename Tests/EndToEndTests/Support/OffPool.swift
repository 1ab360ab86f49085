// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Runs blocking work on a thread of its own and waits for it without blocking a thread of the tests' pool, which has
/// no more of them than the machine has cores.
func offPool<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        startThread { continuation.resume(returning: work()) }
    }
}

/// The same for work that throws.
func offPool<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    let result: Result<Value, any Error> = await offPool { Result { try work() } }
    return try result.get()
}

/// Starts a detached thread.
func startThread(_ work: @escaping @Sendable () -> Void) {
    let box = unsafe Unmanaged.passRetained(Work(work))
    var identifier = pthread_t()
    let result = unsafe pthread_create(
        &identifier, nil,
        { pointer in
            if let pointer = unsafe pointer {
                let work = unsafe Unmanaged<Work>.fromOpaque(pointer).takeRetainedValue()
                work.run()
            }
            return nil
        }, unsafe box.toOpaque())
    guard result == 0 else {
        unsafe box.release()
        // No thread to be had: better late on the pool than never.
        Task { work() }
        return
    }
    pthread_detach(identifier)
}

private final class Work: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
