// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Credentials
import Secrets

/// The files of the state directory: each is written as a whole, or not at all.
///
/// Used by the state thread while the thread of the simulation waits for it.
final class SimulatedFiles: StateFiles, @unchecked Sendable {
    private unowned let simulation: Simulation
    private var values: [String: Secret]

    /// Creates files without any state but the key of digests, so that each run has the same digests.
    init(_ simulation: Simulation) {
        self.simulation = simulation
        values = ["latch-key": Secret([UInt8](repeating: 7, count: 32))]
    }

    func load(_ name: String) throws(StateError) -> Secret? { values[name] }

    func save(_ value: Secret, as name: String) throws(StateError) {
        guard !simulation.isDiskFault(6) else { throw StateError(reason: "simulated") }
        values[name] = value
    }

    func remove(_ name: String) throws(StateError) { values[name] = nil }

    /// Returns the content of a file.
    func text(of name: String) -> String { values[name]?.revealText() ?? "" }

    /// Returns true if any file has that text.
    func hold(_ text: String) -> Bool { values.values.contains { $0.revealText().contains(text) } }

    /// Has a newer version of the program write a latch for a reason that this one does not know. Returns the file as it was, or
    /// `nil` if there is no latch.
    func writeUnknownLatch() -> Secret? {
        let latches = text(of: "latches")
        guard latches.contains("\"rejected\"") else { return nil }
        defer {
            values["latches"] = Secret(latches.replacing("\"rejected\"", with: "\"expelled\"", maxReplacements: 1))
        }
        return values["latches"]
    }

    /// Puts the file of latches back.
    func restoreLatches(_ latches: Secret) { values["latches"] = latches }
}

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
