// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// From a synchronous command into `async` code and back.
enum Blocking {
    /// Runs `work` on the pool and waits for it, blocking the calling thread, which is the main one.
    static func run<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
        let result = Box<Value>()
        Task {
            let value = await work()
            result.value.withLock { $0 = value }
        }
        while true {
            if let value = result.value.withLock({ $0 }) { return value }
            usleep(1_000)
        }
    }

    private final class Box<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }
}
