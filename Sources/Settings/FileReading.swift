// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Why a file could not be read.
struct FileReadingError: Error, Equatable {
    var reason: String
}

/// The bytes of the file at `path`, which must be no directory and at most 1 MiB.
func readFile(_ path: String) throws(FileReadingError) -> [UInt8] {
    guard !path.isEmpty, !path.utf8.contains(0) else { throw FileReadingError(reason: "is no path of a file") }
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
    throw FileReadingError(reason: "is larger than 1 MiB, too large for settings")
}

/// The time as `YYYYMMDDhhmmss` in UTC.
func utcDate() -> String {
    var seconds = time(nil)
    var parts = unsafe tm()
    unsafe gmtime_r(&seconds, &parts)
    let numbers = unsafe [parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec]
    return unsafe "\(parts.tm_year + 1900)" + numbers.map { $0 < 10 ? "0\($0)" : "\($0)" }.joined()
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
