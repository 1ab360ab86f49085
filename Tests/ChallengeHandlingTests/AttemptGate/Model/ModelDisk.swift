// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// The disk of a schedule: each write takes a while, in which anything can happen, a crash included.
struct ModelDisk {
    /// What is on it.
    private(set) var record = AttemptRecord()
    /// What is on its way to it.
    var queue = AttemptQueue()
    private var writing: (changes: [AttemptChange], record: AttemptRecord)?

    /// Ends the write that is under way, or begins one. Returns the number of changes that it wrote.
    mutating func turn(_ gate: inout AttemptGate<Int>) -> Int {
        guard let (changes, _) = writing else {
            writing = queue.begin().map { ($0, gate.record) }
            return 0
        }
        write()
        gate.merge(record, then: queue.queued)
        _ = queue.end()
        return changes.count
    }

    /// Returns true if a change is on disk, or if there was none.
    func has(_ ticket: AttemptQueue.Ticket?) -> Bool { ticket.map(queue.hasEnded) ?? true }

    /// The process is killed; the write that is under way may have come to its end.
    mutating func crash(isWritten: Bool) {
        if isWritten { write() }
        writing = nil
        queue = AttemptQueue()
    }

    private mutating func write() {
        guard let (changes, own) = writing else { return }
        writing = nil
        for change in changes { record.apply(change) }
        var sum = own
        sum.merge(record, then: changes)
        record = sum
    }
}

/// Something that goes on when a change is on disk.
struct ModelWrite {
    enum Next {
        /// The password goes out, with the code of a step.
        case send(Int, code: Int64)
        /// The login is over.
        case finish(Result<Session, LoginFailure>)
        /// The session that was in doubt is over.
        case end(generation: UInt64, LoginFailure)
    }

    var key: SessionKey
    /// The change; `nil` if there is nothing to write.
    var ticket: AttemptQueue.Ticket?
    /// The password that the server refused, which nobody was told yet.
    var refused: Int?
    var next: Next
}
