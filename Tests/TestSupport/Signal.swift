// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Something that happens once, on some thread, and that others wait for.
package final class Signal: Sendable {
    private let isFired = Atomic<Bool>(false)

    /// A signal that has not been given.
    package init() {}

    /// Whether it was given.
    package var isSet: Bool { isFired.load(ordering: .acquiring) }

    /// Gives it: everybody who waits goes on.
    package func set() {
        isFired.store(true, ordering: .releasing)
        Bell.shared.ring()
    }

    /// Blocks until it is given. Returns false where that takes five minutes.
    @discardableResult
    package func wait() -> Bool { Bell.shared.wait { isSet } }

    /// Suspends until it is given.
    package func wait() async { await Bell.shared.wait { self.isSet } }
}

/// Suspends until the task is cancelled: a handler that never answers.
package func untilCancelled() async {
    let end = Signal()
    await withTaskCancellationHandler {
        await end.wait()
    } onCancel: {
        end.set()
    }
}
