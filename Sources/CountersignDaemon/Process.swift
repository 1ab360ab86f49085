// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Glibc
internal import Synchronization
internal import System

/// Environment and output of this process.
enum Process {
    /// Environment variables of the process, including changes since its start.
    static var environment: [String: String] { variables.withLock { $0 } }

    static func setVariable(_ name: String, to value: String) { variables.withLock { $0[name] = value } }

    private static let variables = Mutex(initialVariables)

    private static let initialVariables: [String: String] = {
        var result = Environment.all
        // Systemd stores the unit's credentials in this directory. Root can read them and so uses the daemon's credentials.
        if result["CREDENTIALS_DIRECTORY"] == nil, geteuid() == 0,
            FileSystem.allows(Self.unitCredentials, R_OK | X_OK)
        {
            result["CREDENTIALS_DIRECTORY"] = Self.unitCredentials
        }
        return result
    }()

    private static let unitCredentials = "/run/credentials/countersign.service"

    /// Writes one line to standard error.
    static func printError(_ line: String) {
        write(line + "\n", to: STDERR_FILENO)
    }

    /// Writes a JSON value as one line to standard output.
    static func print(_ value: JSONValue) { print(String(decoding: value.serialized(), as: UTF8.self).harmlessJSON) }

    /// Writes whole lines to standard output.
    static func print(lines: String) { write(lines, to: STDOUT_FILENO) }

    /// Writes whole lines to standard error.
    static func printError(lines: String) { write(lines, to: STDERR_FILENO) }

    /// Writes one line to standard output, unbuffered for programs that read from a pipe.
    static func print(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// Writes text without what controls a terminal: here, so that no command can forget it.
    private static func write(_ text: String, to descriptor: Int32) {
        // A failure to write cannot be reported anywhere.
        try? DescriptorIO.writeAll(Array(text.harmless.utf8).span, to: descriptor)
    }
}

/// Directory that exists while a command runs.
enum TemporaryFolder {
    /// Creates a directory that only this user can enter, and returns its path.
    static func make(_ purpose: String) throws(Failure) -> String {
        do throws(SystemError) {
            return try TemporaryDirectory.make(prefix: "countersign-\(purpose)")
        } catch {
            throw Failure("cannot create a directory in /tmp: \(error)", code: EX_UNAVAILABLE)
        }
    }

    /// Removes the directory with all its files.
    static func remove(_ path: String) { TemporaryDirectory.remove(path) }
}

/// Failure of a command: one line for standard error, and an exit code of sysexits.h.
struct Failure: Error, CustomStringConvertible {
    let description: String
    let code: Int32

    init(_ description: String, code: Int32) {
        self.description = description.harmless
        self.code = code
    }
}

/// Exit codes of sysexits.h.
let (EX_OK, EX_USAGE, EX_DATA, EX_UNAVAILABLE, EX_NOPERM, EX_CONFIG): (Int32, Int32, Int32, Int32, Int32, Int32) =
    (0, 64, 65, 69, 77, 78)
