// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Synchronization

/// A store of attempts whose writes end when the test says so.
final class HeldAttempts: AttemptStore {
    private struct State {
        var disk = AttemptRecord()
        var writes: [(changes: [AttemptChange], record: AttemptRecord, done: @Sendable (AttemptRecord?) -> Void)] = []
        var begun: [[AttemptChange]] = []
    }

    private let state = Mutex(State())
    private let digests = UnkeptAttempts()

    /// What is on disk.
    var disk: AttemptRecord { state.withLock { $0.disk } }
    /// The changes of each write that has begun.
    var begun: [[AttemptChange]] { state.withLock { $0.begun } }

    /// Another process changes what is on disk.
    func change(_ change: AttemptChange) { state.withLock { $0.disk.apply(change) } }

    /// Ends the oldest write that has not ended. `isWritten`: false if the disk refuses it.
    func end(isWritten: Bool = true) {
        let ended = state.withLock { state -> (AttemptRecord?, @Sendable (AttemptRecord?) -> Void)? in
            guard !state.writes.isEmpty else { return nil }
            let write = state.writes.removeFirst()
            guard isWritten else { return (nil, write.done) }
            for change in write.changes { state.disk.apply(change) }
            var sum = write.record
            sum.merge(state.disk, then: write.changes)
            if !write.changes.isEmpty { state.disk = sum }
            return (sum, write.done)
        }
        guard let (record, done) = ended else { return }
        done(record)
    }

    func load() -> AttemptRecord { disk }

    func store(
        _ changes: [AttemptChange], of record: AttemptRecord, done: @escaping @Sendable (AttemptRecord?) -> Void
    ) {
        state.withLock { state in
            state.begun.append(changes)
            state.writes.append((changes, record, done))
        }
    }

    func digest(of credential: Credential) -> [UInt8] { digests.digest(of: credential) }
}
