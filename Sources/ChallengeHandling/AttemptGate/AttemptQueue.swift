// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Queue of an attempt gate's changes for its store: one write at a time, in order.
///
/// A change is in the gate's memory before it is queued. Changes queued during a write go into the next one. The waiter of a change
/// is called at the end of the write that contains the change. Changes that could not be written go into the next write, which
/// `retry` begins if nothing else does. A value without I/O.
package struct AttemptQueue: Sendable {
    /// Position of a change in the order of all changes.
    package struct Ticket: Sendable, Hashable, Comparable {
        fileprivate var number: UInt64

        /// Returns true if the change of `left` was queued first.
        package static func < (left: Ticket, right: Ticket) -> Bool { left.number < right.number }
    }

    /// Callback for the end of a write, called once, even after a failure.
    package typealias Waiter = @Sendable () -> Void

    /// Maximum number of changes queued during one write.
    ///
    /// Latches and used steps beyond the limit are still written, because each write includes the whole record. Acceptances may be
    /// lost.
    package static let limit = 1024

    /// Changes of the next write.
    package private(set) var queued: [AttemptChange] = []
    private var last = Ticket(number: 0)
    /// Last ticket of the current write, and its changes; `nil` while no write is running.
    private var writing: (ticket: Ticket, changes: [AttemptChange])?
    /// Changes that could not be written by the last write.
    package private(set) var unwritten: [AttemptChange] = []
    /// Last ticket whose write has ended.
    private var ended = Ticket(number: 0)
    private var waiters: [(ticket: Ticket, waiter: Waiter)] = []

    /// Creates an empty queue.
    package init() {}

    /// Adds a change to the next write.
    package mutating func enqueue(_ change: AttemptChange) -> Ticket {
        var isUnlatching = false
        if case .unlatch(let challenge, _) = change {
            isUnlatching = true
            // One per challenge suffices, because the last one also opens all latches closed before it.
            queued.removeAll { if case .unlatch(challenge, _) = $0 { true } else { false } }
        }
        if queued.count < Self.limit || isUnlatching { queued.append(change) }
        return enqueueRead()
    }

    /// Queues a read of the store, for the changes of other processes.
    package mutating func enqueueRead() -> Ticket {
        last.number &+= 1
        return last
    }

    /// Returns true if the write that contains `ticket` has ended.
    package func hasEnded(_ ticket: Ticket) -> Bool { ticket <= ended }

    /// Calls `waiter` at the end of the write that contains `ticket`.
    ///
    /// Returns false, without a call, if that write has ended.
    package mutating func wait(for ticket: Ticket, _ waiter: @escaping Waiter) -> Bool {
        guard !hasEnded(ticket) else { return false }
        waiters.append((ticket, waiter))
        return true
    }

    /// Begins a write and returns its changes; empty for a read.
    ///
    /// Returns `nil` if a write is running or nothing is queued.
    package mutating func begin() -> [AttemptChange]? {
        guard writing == nil, last > ended else { return nil }
        writing = (last, queued)
        defer { queued = [] }
        return queued
    }

    /// Lets `begin` write the changes that could not be written before, if there are any.
    package mutating func retry() {
        if !unwritten.isEmpty, writing == nil { _ = enqueueRead() }
    }

    /// Ends the write and returns the waiters to call. `isWritten`: false if the store has refused it.
    package mutating func end(isWritten: Bool = true) -> [Waiter] {
        guard let (written, changes) = writing else { return [] }
        writing = nil
        ended = written
        if isWritten {
            if !changes.isEmpty { unwritten = [] }
        } else if !changes.isEmpty {
            unwritten = changes
            // Before the changes that were queued since: of several about the same value, the last one counts.
            queued = Array((changes + queued).suffix(Self.limit))
        }
        let reached = waiters.filter { $0.ticket <= written }
        waiters.removeAll { $0.ticket <= written }
        return reached.map(\.waiter)
    }
}
