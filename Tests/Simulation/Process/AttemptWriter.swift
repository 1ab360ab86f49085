// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// The attempts of one process on its disk: nothing is written any more once the process has ended.
struct AttemptWriter: AttemptStore {
    private let disk: SimulatedDisk
    private let process: Int

    /// Creates the attempts of the process that has the disk now.
    init(_ disk: SimulatedDisk) {
        self.disk = disk
        process = disk.process
    }

    func load() -> AttemptRecord { disk.load() }

    func store(
        _ changes: [AttemptChange], of record: AttemptRecord, done: @escaping @Sendable (AttemptRecord?) -> Void
    ) {
        guard process == disk.process else { return done(nil) }
        disk.store(changes, of: record, done: done)
    }

    func digest(of credential: Credential) -> [UInt8] { disk.digest(of: credential) }
}
