// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Glibc
internal import Settings
internal import SettingsReading
internal import System

/// A configuration that lasts as long as a command. Its file and its daemon's state are in a temporary directory.
struct TemporaryConfiguration {
    /// The temporary directory.
    let folder: String
    /// The text of the file.
    let text: String

    /// Makes the directory and writes the file into it. `text` gets the directory's path.
    init(_ purpose: String, _ text: (_ folder: String) -> String) throws(Failure) {
        folder = try TemporaryFolder.make(purpose)
        self.text = text(folder)
        let file = "\(folder)/countersign.yaml"
        do throws(SystemError) {
            try FileSystem.write(Array(self.text.utf8), to: file, mode: 0o600)
        } catch {
            remove()
            throw Failure("cannot write \(file): \(error)", code: EX_UNAVAILABLE)
        }
    }

    func daemon(observer: (any LoginObserver)? = nil) throws -> Daemon {
        let path = "\(folder)/countersign.yaml"
        let (settings, problems) = Settings.load(path: path, environment: Process.environment)
        guard let settings else {
            throw Failure(problems.map(\.description).joined(separator: "\n"), code: EX_CONFIG)
        }
        return try Daemon(settings: settings, path: path, observer: observer, stateDirectory: "\(folder)/state")
    }

    /// Removes the directory with all its files.
    func remove() { TemporaryFolder.remove(folder) }
}
