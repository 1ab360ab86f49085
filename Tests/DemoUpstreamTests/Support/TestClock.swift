// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Synchronization

/// A clock that the test moves.
final class TestClock: Sendable {
    private let milliseconds = Mutex<Int64>(1_469_000_000_000)

    var now: Int64 { milliseconds.withLock { $0 } }

    func pass(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1000 } }
}
