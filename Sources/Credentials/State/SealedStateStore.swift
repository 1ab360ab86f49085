// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets
internal import Synchronization
package import System

/// State in sealed files (`SealedStateFiles`), read and written by one thread.
///
/// A caller waits without blocking its own thread.
package struct SealedStateStore: StateStore {
    /// The files, for use on the thread only.
    package let files: SealedStateFiles
    /// The thread that reads and writes the files.
    package let thread: StateThread
    /// Values that are being saved, or could not be saved: for `retrySaves`.
    private let unsaved = UnsavedValues()

    /// Opens the directory, and creates it if missing. Blocks until the directory is open.
    ///
    /// `key` is the systemd credential `state-key` with at least 16 bytes. Without it, the key in the directory is used or created.
    /// Throws also if `start` cannot start a thread.
    package init(
        directory: String, key: Secret? = nil, start: ThreadStart = startThread
    ) throws(StateError) {
        let thread = try StateThread(start: start)
        files = try thread.wait { () throws(StateError) in try SealedStateFiles(directory: directory, key: key) }
        self.thread = thread
    }

    /// Loads the value stored under `name`; `nil` if there is no such value.
    package func load(_ name: String) async throws(StateError) -> Secret? {
        try await thread.run { [files] () throws(StateError) in try files.load(name) }
    }

    /// Seals `value` and stores it under `name`. The value is on disk when the call returns.
    package func save(_ value: Secret, as name: String) async throws(StateError) {
        // Noted before, and on this thread: the queue may be full.
        unsaved.note(value, as: name)
        do throws(StateError) {
            try await thread.run { [files, unsaved] () throws(StateError) in
                try files.save(value, as: name)
                unsaved.remove(value, as: name)
            }
        } catch {
            unsaved.noteFailure(error, of: value, as: name)
            throw error
        }
    }

    /// True if a value is being saved, or could not be saved.
    package var hasUnsaved: Bool { unsaved.areThere }

    /// Reasons why values could not be saved, by name; they are only in memory.
    package var failures: [String: StateError] { unsaved.failures }

    /// Saves the values again that could not be saved, unless others have been saved or removed since.
    package func retrySaves() {
        _ = thread.enqueue { [files, unsaved] in
            for (name, value) in unsaved.all {
                do throws(StateError) {
                    try files.save(value, as: name)
                    unsaved.remove(value, as: name)
                } catch {
                    unsaved.noteFailure(error, of: value, as: name)
                }
            }
        }
    }

    /// Removes the value stored under `name`, if there is one.
    package func remove(_ name: String) async throws(StateError) {
        unsaved.note(nil, as: name)
        try await thread.run { [files] () throws(StateError) in try files.remove(name) }
    }

    /// Waits until all requested writes are on disk. Returns true if they were within `limit`.
    package func finish(within limit: Duration) -> Bool { thread.finish(within: limit) }
}

/// Values that are not saved yet, by name.
private final class UnsavedValues: Sendable {
    private struct Unsaved: Sendable {
        var value: Secret
        /// Error of the last attempt to save the value; nil before its end.
        var failure: StateError?
    }

    private let values = Mutex<[String: Unsaved]>([:])

    var areThere: Bool { values.withLock { !$0.isEmpty } }
    var all: [(String, Secret)] { values.withLock { values in values.map { ($0.key, $0.value.value) } } }
    var failures: [String: StateError] { values.withLock { $0.compactMapValues(\.failure) } }

    /// Replaces the value of that name; `nil` if no value is waiting to be saved.
    func note(_ value: Secret?, as name: String) {
        values.withLock { values in values[name] = value.map { Unsaved(value: $0, failure: values[name]?.failure) } }
    }

    /// Records that a value could not be saved, unless another of that name is waiting by now.
    func noteFailure(_ failure: StateError, of value: Secret, as name: String) {
        values.withLock { values in
            if values[name]?.value == value { values[name]?.failure = failure }
        }
    }

    /// Removes a saved value, unless another of that name is waiting to be saved by now.
    func remove(_ value: Secret, as name: String) {
        values.withLock { values in
            if values[name]?.value == value { values[name] = nil }
        }
    }
}

// Values stored by another party, sealed in the same format with the same key. Swapped-out memory contains no plain
// value, and a modified value cannot be opened.
extension SealedStateStore {
    /// Returns `value` sealed under `name`, in the format of a state file; `nil` if the encryption fails.
    package func sealed(_ value: Secret, as name: String) -> [UInt8]? {
        Sealing.seal(value, key: files.key, associated: SealedStateFiles.associatedData(name)).map { box in
            SealedStateFiles.magic + box.nonce + box.ciphertext + box.tag
        }
    }

    /// Returns the value that was sealed under `name`; `nil` for other bytes or another key.
    package func opened(_ bytes: [UInt8], as name: String) -> Secret? {
        var reader = ByteReader(bytes)
        guard reader.read(SealedStateFiles.magic.count) == SealedStateFiles.magic, let nonce = reader.read(12),
            let ciphertext = reader.read(bytes.count - SealedStateFiles.magic.count - 28), let tag = reader.read(16)
        else { return nil }
        let box = Sealing.Box(nonce: nonce, ciphertext: ciphertext, tag: tag)
        return Sealing.open(box, key: files.key, associated: SealedStateFiles.associatedData(name))
    }
}
