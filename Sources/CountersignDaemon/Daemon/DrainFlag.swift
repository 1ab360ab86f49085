// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// Raised by a worker, waited for by the main thread.
final class DrainFlag: Sendable {
    private let isRaised = Atomic<Bool>(false)

    func raise() { isRaised.store(true, ordering: .releasing) }

    /// Whether it was raised within `limit`; looks every 10 ms, which only the end of the process waits for.
    func wait(atMost limit: Duration) -> Bool {
        let end = ContinuousClock.now + limit
        while !isRaised.load(ordering: .acquiring) {
            if ContinuousClock.now >= end { return false }
            usleep(10_000)
        }
        return true
    }
}
