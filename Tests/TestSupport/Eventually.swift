// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Blocks until `condition` holds that another process brings about. Returns false where that takes a minute.
///
/// Nobody can ring for such a condition, so it is looked at 50 times a second. What happens in this process is waited for by
/// `Bell` and `Signal`.
package func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
    for _ in 0..<3000 {
        if try condition() { return true }
        usleep(20_000)
    }
    return false
}

/// The same, suspended.
package func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
    for _ in 0..<3000 {
        if try await condition() { return true }
        try await Task.sleep(for: .milliseconds(20))
    }
    return false
}
