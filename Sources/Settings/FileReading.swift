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
///
/// The other end of a pipe has five seconds to write: without a limit, one that nobody writes to would stop a reload.
func readFile(_ path: String) throws(FileReadingError) -> [UInt8] {
    guard !path.isEmpty, !path.utf8.contains(0) else { throw FileReadingError(reason: "is not the path of a file") }
    let file: Descriptor
    do { file = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK) } catch { throw openingFault(error) }
    let end = ContinuousClock.now + pipeLimit
    var bytes: [UInt8] = []
    while bytes.count <= YAMLComposer.maximumSize {
        do {
            let read = try DescriptorIO.read(from: file.number, atMost: 65_536)
            if read.isEmpty { return bytes }
            bytes += read
        } catch  where error.code == EAGAIN {
            guard (try? DescriptorIO.waitUntilReadable(file.number, within: end - .now)) == true else {
                throw FileReadingError(
                    reason: "is a pipe to which nothing was written for 5 s; name a file", mayPass: true)
            }
        } catch {
            let isDirectory = error.code == EISDIR
            throw isDirectory
                ? FileReadingError(reason: "is a directory; name the file in it")
                : FileReadingError("cannot be read", error)
        }
    }
    throw FileReadingError(reason: "is larger than 1 MiB, the limit for this file")
}

/// Time for the other end of a pipe to write all of it.
private let pipeLimit = Duration.seconds(5)

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
