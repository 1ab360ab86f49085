// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Glibc
internal import SettingsReading
internal import System

/// Reason why a file could not be read.
struct FileReadingError: Error, Equatable {
    var reason: String
    /// True if the cause may pass by itself.
    var mayPass = false

    /// Returns the only problem of the file at `path`.
    func problem(of path: String) -> Problem {
        var problem = Problem(file: path, mark: nil, keyPath: "", message: reason, severity: .error)
        problem.mayPass = mayPass
        return problem
    }
}

extension FileReadingError {
    /// Creates the error of a call that failed with `error`; `reason` without the system's words.
    fileprivate init(_ reason: String, _ error: SystemError) {
        self.init(reason: "\(reason): \(error)", mayPass: error.mayPass)
    }
}

/// Returns the bytes of the file at `path`, which has at most 1 MiB.
func readFile(_ path: String) throws(FileReadingError) -> [UInt8] {
    guard !path.isEmpty, !path.utf8.contains(0) else { throw FileReadingError(reason: "is not the path of a file") }
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw openingFault(.last) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while bytes.count <= YAMLComposer.maximumSize {
        let count = unsafe read(descriptor, &chunk, chunk.count)
        if count == 0 { return bytes }
        if count > 0 {
            bytes += chunk.prefix(count)
        } else if errno == EISDIR {
            throw FileReadingError(reason: "is a directory; name the file in it")
        } else if errno != EINTR {
            throw FileReadingError("cannot be read", .last)
        }
    }
    throw FileReadingError(reason: "is larger than 1 MiB, the limit for this file")
}

/// Returns the current time in UTC as `YYYYMMDDhhmmss`.
func utcDate() -> String {
    let now = CivilTime(millisecondsSince1970: Int64(time(nil)) * 1000)
    let parts = [now.date.month, now.date.day, now.hour, now.minute, now.second].map { $0.padded(to: 2) }
    return now.date.year.padded(to: 4) + parts.joined()
}

private func openingFault(_ error: SystemError) -> FileReadingError {
    switch error.code {
    case ENOENT: FileReadingError(reason: "there is no such file")
    case EACCES:
        FileReadingError(reason: "cannot be read: permission denied; the daemon's user must be able to read it")
    default: FileReadingError("cannot be opened", error)
    }
}
