// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The limits of all workers together, and the timeouts for their callers.
package struct WorkerLimits: Sendable {
    /// The limit of connected callers.
    package var callers: Int
    /// The limit of exchanges under way.
    package var exchanges: Int
    /// The timeout for a request head, from its first byte.
    package var headTime: Duration
    /// The timeout for the first byte of a connection, if shorter than `headTime`.
    package var silentTime = Duration.seconds(10)
    /// Time without a request after which a connection may be closed for another caller. Before that, a first request
    /// may be on its way.
    package var evictionAge = Duration.seconds(1)
    /// The timeout for each `bodyPace` bytes of a request's body, while the body is wanted.
    package var bodyTime: Duration
    /// The number of body bytes, or else the rest, that must arrive within `bodyTime`.
    package var bodyPace = 1024
    /// The timeout for each `writePace` bytes of a response, while they wait for the caller.
    package var writeTime: Duration
    /// The number of response bytes, or else all that wait, that must go within `writeTime`. A steady caller takes more than this
    /// at once, however slow it is, when it reopens its TCP window.
    package var writePace = 16_384
    /// The timeout between two requests of a connection.
    package var idleTime: Duration
    /// The time without a request after which a connection releases its buffers.
    package var quietTime = Duration.seconds(2)
    /// The timeout for the first request of a caller who connected just before a drain. On a busy machine, seconds may lie
    /// in between.
    package var drainGrace = Duration.seconds(5)

    /// Makes limits. The default timeouts keep slow callers from holding connections for nothing.
    package init(
        callers: Int = 1024, exchanges: Int = 4096, headTime: Duration = .seconds(30),
        bodyTime: Duration = .seconds(60), writeTime: Duration = .seconds(300), idleTime: Duration = .seconds(300)
    ) {
        self.callers = callers
        self.exchanges = exchanges
        self.headTime = headTime
        self.bodyTime = bodyTime
        self.writeTime = writeTime
        self.idleTime = idleTime
    }
}

/// A count over all workers together, with a limit.
///
/// The kernel distributes callers among the workers as it likes. If each worker had a share of the limit, one would refuse
/// callers while another has room.
final class SharedCount: Sendable {
    private let entered = Atomic<Int>(0)
    private let most: Atomic<Int>

    /// Makes a count at zero; `nil` for no limit.
    init(limit: Int?) { most = Atomic(limit ?? .max) }

    /// The present count.
    var count: Int { entered.load(ordering: .relaxed) }

    var limit: Int { most.load(ordering: .relaxed) }

    /// Sets another limit. What is counted already stays.
    func setLimit(_ limit: Int?) { most.store(limit ?? .max, ordering: .relaxed) }

    /// Counts one more and returns true, unless the limit is reached.
    func enter() -> Bool {
        if entered.wrappingAdd(1, ordering: .relaxed).newValue <= limit { return true }
        leave()
        return false
    }

    /// Counts one less.
    func leave() { entered.wrappingSubtract(1, ordering: .relaxed) }
}

/// The counts with limits that all workers share.
struct SharedCounts: Sendable {
    let callers: ConnectionQuotas
    /// Exchanges under way.
    let exchanges: SharedCount
}
