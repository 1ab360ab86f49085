// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What one worker counts besides the exchanges with its upstreams: plain numbers, touched on its loop only.
struct WorkerCounts: Sendable {
    var begunExchanges: UInt64 = 0
    var replies: [LocalReplyCount: UInt64] = [:]
    var refused: [NoRoom: UInt64] = [:]
}

/// Counts for one worker.
final class WorkerMeter {
    private(set) var counts = WorkerCounts()

    /// An exchange has begun.
    func exchangeBegan() { counts.begunExchanges &+= 1 }

    /// A local reply was made; `upstream` is where its request would have gone, where that is known.
    func replied(_ reply: LocalReply, upstream: String) {
        let count = LocalReplyCount(upstream: upstream, code: reply.code, status: reply.status)
        counts.replies[count, default: 0] &+= 1
    }

    /// A caller was turned away before its request was read.
    func refused(_ reason: NoRoom) { counts.refused[reason, default: 0] &+= 1 }
}
