// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A listening socket that is open, shared by all workers.
struct ListenSocket: Sendable {
    /// Where it listens.
    var point: ListenPoint
    /// The socket.
    let descriptor: Int32
    /// The callers connected through its listener, on all workers.
    let callers: SharedCount

    /// Whether nobody else accepts from it once we do not.
    var isOurs: Bool {
        if case .inherited = point { false } else { true }
    }
}
