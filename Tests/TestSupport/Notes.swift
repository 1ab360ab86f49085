// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The notes, in order, taken on whatever thread. Each note rings the bell of the process.
package final class Notes: Sendable {
    private let notes = Mutex<[String]>([])

    /// Nothing said yet.
    package init() {}

    /// All notes.
    package var all: [String] { notes.withLock { $0 } }

    /// The number of notes.
    package var count: Int { all.count }

    /// Adds one.
    package func add(_ note: String) {
        notes.withLock { $0.append(note) }
        Bell.shared.ring()
    }
}
