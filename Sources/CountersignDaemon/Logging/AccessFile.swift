// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Where the lines of the access log go. Used by the queue's thread alone.
final class AccessFile: Sendable {
    private static let mostLinks = 8

    private let descriptor: Int32
    private let isOurs: Bool

    /// `path`: of a file that is appended to; `nil`: standard output.
    init(_ path: String?) throws(CompositionError) {
        guard let path else {
            (descriptor, isOurs) = (STDOUT_FILENO, false)
            return
        }
        isOurs = true
        do {
            descriptor = try Self.open(path, links: 0)
        } catch {
            throw CompositionError("access-log.to: \(path) cannot be opened: \(error.words)")
        }
    }

    deinit { if isOurs { _ = close(descriptor) } }

    /// Writes the lines. What a pipe does not take for a second is lost: its reader may never come.
    func write(_ lines: [LogLine]) {
        var writer = LogWriter(destination: .json)
        writer.descriptor = descriptor
        writer.patience = 1000
        writer.write(lines, dropped: 0)
    }

    // MARK: Opening

    private struct Fault: Error {
        var words: String

        init(_ words: String) { self.words = words }

        init(errno code: Int32) {
            let text = unsafe String(cString: strerror(code))
            words = "\(text); make its folder (LogsDirectory= of the unit), or let the daemon write there"
        }
    }

    /// Opens the file without waiting for anybody, and without following a link that another user has made.
    private static func open(_ path: String, links: Int) throws(Fault) -> Int32 {
        if let number = passed(path) {
            let copy = fcntl(number, F_DUPFD_CLOEXEC, 3)
            guard copy >= 0 else { throw Fault(errno: errno) }
            return copy
        }
        let flags = O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK
        let opened = unsafe Glibc.open(path, O_WRONLY | flags, 0o640)
        if opened >= 0 { return opened }
        let failure = errno
        // A named pipe that nobody reads yet: with both its ends here it can be opened, and holds what there is room for.
        if failure == ENXIO {
            let both = unsafe Glibc.open(path, O_RDWR | flags, 0o640)
            if both >= 0 { return both }
        }
        guard failure == ELOOP, links < mostLinks else { throw Fault(errno: failure) }
        return try open(target(of: path), links: links + 1)
    }

    /// Where a link leads. One that another user than root or ours has made could have us write over any file.
    private static func target(of path: String) throws(Fault) -> String {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { throw Fault(errno: errno) }
        guard [0, geteuid()].contains(status.st_uid) else {
            throw Fault("it is a symbolic link that uid \(status.st_uid) has made; name the file itself")
        }
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe readlink(path, &bytes, bytes.count)
        guard count > 0, count < bytes.count else { throw Fault(errno: count < 0 ? errno : ENAMETOOLONG) }
        let target = String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard !target.hasPrefix("/") else { return target }
        return String(path[...(path.lastIndex(of: "/") ?? path.startIndex)]) + target
    }

    /// The descriptor of this process that a path stands for, as /dev/stdout does. A socket, as the journal's, cannot be
    /// opened by such a path.
    private static func passed(_ path: String) -> Int32? {
        switch path {
        case "/dev/stdout": return STDOUT_FILENO
        case "/dev/stderr": return STDERR_FILENO
        default: break
        }
        for folder in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(folder) {
            return Int(path.dropFirst(folder.count)).flatMap { Int32(exactly: $0) }
        }
        return nil
    }
}
