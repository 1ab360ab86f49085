// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A listening socket that is open, shared by all workers.
struct ListenSocket: Sendable {
    /// Where it listens.
    var point: ListenPoint
    /// The socket.
    let descriptor: Int32
    /// Its name in the file system, where it has one.
    let file: SocketFile?
    /// The places of its listener, on all workers.
    let callers: CallerPlaces

    /// Lets no new callers into its queue; see `ListenPoint.seal`.
    func seal() { point.seal(descriptor, file) }

    /// Closes it, and removes its name.
    func close() { point.close(descriptor, file) }

    /// True if nobody else accepts from it once we do not.
    var isOurs: Bool {
        if case .inherited = point { false } else { true }
    }
}
