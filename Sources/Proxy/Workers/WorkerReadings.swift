// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import Synchronization

/// Asks the workers what they have counted, each on its own loop. From any thread.
///
/// What each said last is kept: of a worker whose loop is stuck that is told, so that no sum ever goes backwards.
package final class WorkerReadings: Sendable {
    private struct State {
        /// What each worker has said, and the number of the question.
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

    /// Asks all workers. `done` is called once all have answered, on the thread of one of them; never, where a loop is stuck.
    package func ask(_ done: @escaping @Sendable () -> Void) {
        let question = state.withLock { state in
            state.questions += 1
            return state.questions
        }
        let left = Counter(members.count)
        for member in members {
            let askedAt = member.loop.clockNow
            member.loop.execute {
                let reading = WorkerReading(of: member.worker.value, askedAt: askedAt)
                self.state.withLock { state in
                    // Not an older one in place of a newer.
                    guard state.last[member.number].map({ $0.question < question }) ?? true else { return }
                    state.last[member.number] = (reading, question)
                }
                if left.countDown() { done() }
            }
        }
    }

    /// What they have said last.
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
