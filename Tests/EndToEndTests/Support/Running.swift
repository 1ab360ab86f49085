// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The program that runs at present, of several one after the other.
final class Running: Sendable {
    private let child = Mutex<Child?>(nil)

    /// From now on this one.
    func put(_ next: Child) { child.withLock { $0 = next } }

    /// The one that runs; from now on none.
    func take() -> Child? {
        child.withLock { child in
            defer { child = nil }
            return child
        }
    }
}
