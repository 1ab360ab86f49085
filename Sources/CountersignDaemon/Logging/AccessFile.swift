// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import System

/// File of the access log, used only by the queue's thread.
final class AccessFile: Sendable {
    private static let maximumLinks = 8

    private let descriptor: Int32
    private let isOurs: Bool

    /// The file at `path`, to which lines are appended; standard output if `nil`.
    init(_ path: String?) throws(CompositionError) {
        guard let path else {
            (descriptor, isOurs) = (STDOUT_FILENO, false)
            return
        }
        isOurs = true
        do {
            descriptor = try Self.open(path, links: 0)
        } catch {
            throw CompositionError("access-log.to: \(path) cannot be opened: \(error.reason)", mayPass: error.mayPass)
        }
    }

    deinit { if isOurs { _ = close(descriptor) } }

    /// Writes the lines. Lines that a pipe does not accept for a second are lost, because it may have no reader.
    func write(_ lines: [LogLine]) {
        var writer = LogWriter(destination: .json)
        writer.descriptor = descriptor
        writer.timeout = .seconds(1)
        writer.write(lines, dropped: 0)
    }

    // MARK: Opening

    private struct Fault: Error {
        var reason: String
        var mayPass = false

        init(_ reason: String) { self.reason = reason }

        init(errno code: Int32) {
            let error = SystemError(code: code)
            mayPass = error.mayPass
            let refusal = JudgedDirectory.refusal(code)
            reason =
                mayPass || refusal != nil
                ? refusal ?? "\(error)"
                : "\(error); create its directory (LogsDirectory= of the unit), or let the daemon write there"
        }
    }

    /// Opens the file without waiting for a reader. Does not follow a link of another user.
    private static func open(_ path: String, links: Int) throws(Fault) -> Int32 {
        if let number = passed(path) {
            let copy = fcntl(number, F_DUPFD_CLOEXEC, 3)
            guard copy >= 0 else { throw Fault(errno: errno) }
            return copy
        }
        let directory: JudgedDirectory
        do throws(SystemError) {
            directory = try JudgedDirectory(of: path, followingLast: false)
        } catch {
            throw Fault(errno: error.code)
        }
        do throws(SystemError) {
            return try directory.openLog(mode: 0o640).release()
        } catch {
            guard error.code == ELOOP, links < maximumLinks else { throw Fault(errno: error.code) }
        }
        return try open(target(of: path, in: directory), links: links + 1)
    }

    /// Returns the target of a link. A link that belongs neither to root nor to this process's user could point to any
    /// file, so it is refused.
    private static func target(of path: String, in directory: JudgedDirectory) throws(Fault) -> String {
        let owner: uid_t
        let target: Result<String, SystemError>
        do throws(SystemError) {
            owner = try directory.status(of: directory.name).st_uid
            target = Result { () throws(SystemError) in try directory.target(ofLink: directory.name) }
        } catch {
            throw Fault(errno: error.code)
        }
        guard [0, geteuid()].contains(owner) else {
            throw Fault("it is a symbolic link created by uid \(owner); use the path of the file itself")
        }
        switch target {
        case .failure(let error): throw Fault(errno: error.code)
        case .success(let target):
            guard !target.hasPrefix("/") else { return target }
            return "\(FileSystem.parent(of: path))/\(target)"
        }
    }

    /// Returns the descriptor of this process for a path such as /dev/stdout.
    ///
    /// A socket, such as the journal's, cannot be opened with such a path.
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
