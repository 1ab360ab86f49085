// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import Synchronization

/// A worker as others reach it.
struct WorkerMember: Sendable {
    let number: Int
    let loop: EventLoop
    let worker: LoopBound<Worker>
}

/// All workers of a proxy, for each of them: a caller may come to one, and the connection that can go for it be another's.
final class WorkerPeers: Sendable {
    private let members = Mutex<[WorkerMember]>([])

    /// Sets who they are; none, at the end.
    func introduce(_ all: [WorkerMember]) { members.withLock { $0 = all } }

    /// All but the worker of that number.
    func others(than number: Int) -> [WorkerMember] { members.withLock { $0.filter { $0.number != number } } }
}
