// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The longest time that a test waits, for all waits. A test that passes takes less on any machine.
let limit = Duration.seconds(300)

/// Blocks until `condition` holds, for a change that cannot ring a bell: one by another process, or by a thread that
/// does not know about tests. Returns false after five minutes.
///
/// The condition is checked 100 times a second. For changes in this process there are `Bell` and `Signal`.
package func blockUntil(_ condition: () throws -> Bool) rethrows -> Bool {
    let end = ContinuousClock.now + limit
    while true {
        if try condition() { return true }
        guard ContinuousClock.now < end else { return false }
        usleep(10_000)
    }
}

/// Waits for `condition` as `blockUntil` does, but suspended; also returns false if the task is cancelled.
package func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
    let end = ContinuousClock.now + limit
    while true {
        if try await condition() { return true }
        guard ContinuousClock.now < end, !Task.isCancelled else { return false }
        try? await Task.sleep(for: .milliseconds(10))
    }
}

/// Repeats `round` without a pause until `condition` holds. Returns false after five minutes.
package func goingOn(
    until condition: () async throws -> Bool, _ round: (Int) async throws -> Void
) async rethrows -> Bool {
    let end = ContinuousClock.now + limit
    var number = 0
    while try await !condition() {
        guard ContinuousClock.now < end, !Task.isCancelled else { return false }
        try await round(number)
        number += 1
    }
    return true
}
