// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeClient
internal import EventLoop
internal import Synchronization

/// The counters of one worker at one moment.
package struct WorkerReading: Sendable {
    /// The worker's number.
    package let number: Int
    /// The time that the loop took to reach the question, in nanoseconds; some microseconds if idle.
    package let lag: UInt64
    /// The time that the loop has worked between its waits, in nanoseconds.
    package let busy: UInt64
    /// The longest turn of the loop in the last 30 to 60 seconds, in nanoseconds.
    package let longestTurn: UInt64
    /// Exchanges ever begun.
    package let begunExchanges: UInt64
    /// The counters of each upstream, in no order.
    package let upstreams: [UpstreamReading]
    /// Local replies.
    package let replies: [LocalReplyCount: UInt64]
    /// Callers turned away before their request was read, by reason.
    package let refused: [ConnectionRefusal: UInt64]

    /// Makes the reading of an idle worker with these counts.
    package init(
        number: Int, begunExchanges: UInt64 = 0, upstreams: [UpstreamReading] = [],
        replies: [LocalReplyCount: UInt64] = [:]
    ) {
        (self.number, lag, busy, longestTurn) = (number, 0, 0, 0)
        (self.begunExchanges, self.upstreams, self.replies, refused) = (begunExchanges, upstreams, replies, [:])
    }

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

/// The counters of all workers and the state of the proxy: the one source for metrics and status.
package struct ProxyReading: Sendable {
    /// The readings of the workers, in order of their numbers.
    package var workers: [WorkerReading] = []
    /// The numbers of workers that have not answered in time; their readings here are older.
    package var late: [Int] = []
    /// Callers connected now.
    package var connections = 0
    /// Callers ever connected.
    package var acceptedConnections = 0
    /// The limit of connected callers, except those of the admin listener.
    package var connectionLimit = 0
    /// Exchanges under way now, tunnels included.
    package var exchanges = 0
    /// The limit of exchanges under way.
    package var exchangeLimit = 0
    /// Connections that have switched to another protocol.
    package var tunnels = 0

    /// Makes an empty reading.
    package init() {}

    /// Exchanges ever begun.
    package var begunExchanges: UInt64 { workers.reduce(0) { $0 &+ $1.begunExchanges } }

    /// The counters of each upstream, summed over all workers, in order of the names.
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
    package var refused: [ConnectionRefusal: UInt64] {
        workers.reduce(into: [:]) { $0.merge($1.refused) { $0 &+ $1 } }
    }
}

/// The labels by which local replies are counted.
package struct LocalReplyCount: Sendable, Hashable {
    /// The upstream of the request; empty if it was not known yet.
    package let upstream: String
    /// The reply's code.
    package let code: LocalReply.Code
    /// The status, which may differ from that of the code (`bad-request` has several).
    package let status: Int

    /// Makes a set of labels.
    package init(upstream: String, code: LocalReply.Code, status: Int) {
        self.upstream = upstream
        self.code = code
        self.status = status
    }
}

/// Counters of the whole proxy, for events that happen at most once per connection. All workers write each counter with one
/// relaxed addition. Each worker counts the events of requests for itself: see `WorkerMeter`.
package final class ProxyFigures: Sendable {
    private let connections = Atomic<Int>(0)
    private let accepted = Atomic<Int>(0)
    private let tunnels = Atomic<Int>(0)

    /// Makes counters at zero.
    package init() {}

    /// Callers connected now.
    package var openConnections: Int { connections.load(ordering: .relaxed) }
    /// Callers ever connected.
    package var acceptedConnections: Int { accepted.load(ordering: .relaxed) }
    /// Connections that have switched to another protocol.
    package var openTunnels: Int { tunnels.load(ordering: .relaxed) }

    func connectionOpened() {
        connections.wrappingAdd(1, ordering: .relaxed)
        accepted.wrappingAdd(1, ordering: .relaxed)
    }

    func connectionClosed() { connections.wrappingSubtract(1, ordering: .relaxed) }

    func tunnelOpened() { tunnels.wrappingAdd(1, ordering: .relaxed) }

    func tunnelClosed() { tunnels.wrappingSubtract(1, ordering: .relaxed) }

}

/// The counters of one worker, except the exchanges with its upstreams. Used only on its loop.
struct WorkerCounts: Sendable {
    var begunExchanges: UInt64 = 0
    var replies: [LocalReplyCount: UInt64] = [:]
    var refused: [ConnectionRefusal: UInt64] = [:]
}

/// Counts the events of one worker.
final class WorkerMeter {
    private(set) var counts = WorkerCounts()

    /// Counts an exchange that began.
    func exchangeBegan() { counts.begunExchanges &+= 1 }

    /// Counts a local reply. `upstream` is the upstream of its request, if known.
    func replied(_ reply: LocalReply, upstream: String) {
        let count = LocalReplyCount(upstream: upstream, code: reply.code, status: reply.status)
        counts.replies[count, default: 0] &+= 1
    }

    /// Counts a caller turned away before the request was read.
    func refused(_ reason: ConnectionRefusal) { counts.refused[reason, default: 0] &+= 1 }
}

/// Collects the counters of the workers, each on its own loop. May be used from any thread.
///
/// The last reading of each worker is kept and used while its loop is stuck, so totals never decrease.
package final class WorkerReadings: Sendable {
    private struct State {
        /// The last reading of each worker, and the number of its question.
        var last: [Int: (reading: WorkerReading, question: UInt64)] = [:]
        var questions: UInt64 = 0
    }

    private let members: [WorkerMember]
    private let figures: ProxyFigures
    private let counts: SharedCounts
    private let state = Mutex(State())

    init(members: [WorkerMember], figures: ProxyFigures, counts: SharedCounts) {
        self.members = members
        self.figures = figures
        self.counts = counts
    }

    /// Asks all workers. `done` is called on the thread of the last one to answer; never, if a loop is stuck.
    package func ask(_ done: @escaping @Sendable () -> Void) {
        let question = state.withLock { state in
            state.questions += 1
            return state.questions
        }
        let answers = CompletionGroup(of: members.count, then: done)
        for member in members {
            let askedAt = member.loop.clockNow
            member.loop.execute {
                let reading = WorkerReading(of: member.worker.value, askedAt: askedAt)
                self.state.withLock { state in
                    // An older reading must not replace a newer one.
                    guard state.last[member.number].map({ $0.question < question }) ?? true else { return }
                    state.last[member.number] = (reading, question)
                }
                answers.completeOne()
            }
        }
    }

    /// The last reading of all workers.
    package var latest: ProxyReading {
        let (last, questions) = state.withLock { ($0.last, $0.questions) }
        var reading = ProxyReading()
        reading.workers = last.values.map(\.reading).sorted { $0.number < $1.number }
        reading.late = members.map(\.number).filter { number in last[number].map { $0.question < questions } ?? true }
        reading.connections = figures.openConnections
        reading.acceptedConnections = figures.acceptedConnections
        reading.connectionLimit = counts.callers.limit
        reading.exchanges = counts.exchanges.count
        reading.exchangeLimit = counts.exchanges.limit
        reading.tunnels = figures.openTunnels
        return reading
    }
}

/// Checks whether the workers' loops turn. An idle loop sleeps, so `ping` has to be called regularly.
package struct WorkerPulse: Sendable {
    /// The longest time between two pings, unless a shorter one is needed.
    package static let period = Duration.seconds(10)
    /// Time after a ping until a loop that has not turned counts as stuck.
    private static let timeout = Duration.seconds(5)

    private let loops: [EventLoop]

    init(loops: [EventLoop]) { self.loops = loops }

    /// Wakes every loop.
    package func ping() {
        for loop in loops { loop.ping() }
    }

    /// Returns true if every loop has turned since the last ping but one. `period` is the time between pings.
    package func isSteady(period: Duration = WorkerPulse.period) -> Bool {
        loops.allSatisfy { $0.clockNow - $0.lastTurn < period + Self.timeout }
    }
}
