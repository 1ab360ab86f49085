// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Glibc

/// Reason why a file could not be read.
struct FileReadingError: Error, Equatable {
    var reason: String
}

/// Returns the bytes of the file at `path`, which has at most 1 MiB.
func readFile(_ path: String) throws(FileReadingError) -> [UInt8] {
    guard !path.isEmpty, !path.utf8.contains(0) else { throw FileReadingError(reason: "is not the path of a file") }
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileReadingError(reason: openingFault(errno)) }
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
            throw FileReadingError(reason: "cannot be read: \(words(errno))")
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

private func openingFault(_ code: Int32) -> String {
    switch code {
    case ENOENT: "there is no such file"
    case EACCES: "cannot be read: permission denied; the daemon's user must be able to read it"
    default: "cannot be opened: \(words(code))"
    }
}

private func words(_ code: Int32) -> String {
    unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
}
