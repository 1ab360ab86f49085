// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
internal import EventLoop

/// What one worker has counted, at one moment.
package struct WorkerReading: Sendable {
    /// The worker's number.
    package let number: Int
    /// How long its loop took to get round to the question, in nanoseconds; that of an idle one some microseconds.
    package let lag: UInt64
    /// How long its loop has worked between its waits, in nanoseconds.
    package let busy: UInt64
    /// The longest of its turns of the last half a minute or up to a minute, in nanoseconds.
    package let longestTurn: UInt64
    /// Exchanges ever begun.
    package let begunExchanges: UInt64
    /// What it counted of each upstream, in no order.
    package let upstreams: [UpstreamReading]
    /// Local replies.
    package let replies: [LocalReplyCount: UInt64]
    /// Callers turned away before their request was read, by reason.
    package let refused: [NoRoom: UInt64]

    init(of worker: Worker, askedAt: LoopInstant) {
        let now = worker.loop.readNow()
        number = worker.number
        lag = now.nanoseconds(since: askedAt)
        busy = worker.loop.activity.busy
        longestTurn = worker.loop.activity.longestTurn(at: now)
        upstreams = worker.runtime.meters.readings
        begunExchanges = worker.meter.counts.begunExchanges
        replies = worker.meter.counts.replies
        refused = worker.meter.counts.refused
    }
}

/// The counters of all workers, and the state of the proxy: the one source of figures for metrics and status.
package struct ProxyReading: Sendable {
    /// The workers', by number.
    package var workers: [WorkerReading] = []
    /// The numbers of those that have not answered in time: what is here of them is older.
    package var late: [Int] = []
    /// Callers connected now.
    package var connections = 0
    /// Callers ever connected.
    package var acceptedConnections = 0
    /// How many callers may be connected; those of the admin listener are not counted among them.
    package var connectionLimit = 0
    /// Exchanges under way now, tunnels included.
    package var exchanges = 0
    /// How many exchanges may be under way.
    package var exchangeLimit = 0
    /// Connections that another protocol is spoken on now.
    package var tunnels = 0

    /// A reading of nothing.
    package init() {}

    /// Exchanges ever begun.
    package var begunExchanges: UInt64 { workers.reduce(0) { $0 &+ $1.begunExchanges } }

    /// Of each upstream what all workers together have counted, in the order of their names.
    package var upstreams: [UpstreamReading] {
        var sums: [String: UpstreamReading] = [:]
        for reading in workers.flatMap(\.upstreams) {
            sums[reading.name, default: UpstreamReading(name: reading.name)].add(reading)
        }
        return sums.values.sorted { $0.name < $1.name }
    }

    /// Local replies.
    package var replies: [LocalReplyCount: UInt64] {
        workers.reduce(into: [:]) { $0.merge($1.replies) { $0 &+ $1 } }
    }

    /// Callers turned away before their request was read, by reason.
    package var refused: [NoRoom: UInt64] {
        workers.reduce(into: [:]) { $0.merge($1.refused) { $0 &+ $1 } }
    }
}

/// Local replies of one kind.
package struct LocalReplyCount: Sendable, Hashable {
    /// The upstream where the request would have gone; empty where that was not known yet.
    package let upstream: String
    /// The reply's code.
    package let code: LocalReply.Code
    /// Its status, which is not always that of the code: a request refused by its grammar has several.
    package let status: Int

    /// A kind of reply.
    package init(upstream: String, code: LocalReply.Code, status: Int) {
        self.upstream = upstream
        self.code = code
        self.status = status
    }
}
