// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import System

/// Outcome of a running daemon's reloads, in a small file for `countersign reload`.
///
/// The file is in the runtime directory. A request to the admin listener could not replace this file: that listener may
/// refuse changes, and a configuration with errors does not name its address. Each process has a separate file, because
/// a demonstration and the service may use the same directory.
struct ReloadRecord: Equatable {
    /// The path of the daemon's configuration, as given to the daemon.
    var configuration: String
    /// The number of finished reloads.
    var count: Int
    /// The reason why the last reload was refused; `nil` if it succeeded.
    var refusal: String?
    /// The path of the admin socket, with which commands find the daemon even if its file has errors; `nil` without
    /// one.
    var socket: String?

    private static let socketMark = "admin unix:"

    /// The lines of the file.
    var text: String {
        let socket = socket.map { Self.socketMark + $0 }
        return ([configuration, String(count)] + [socket, refusal].compactMap(\.self)).map { $0.onOneLine + "\n" }
            .joined()
    }

    init(configuration: String, count: Int, refusal: String?) {
        self.configuration = configuration
        self.count = count
        self.refusal = refusal
    }

    /// The record in the text of a file; `nil` if the text is not a record.
    init?(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        guard (2...4).contains(lines.count), let count = Int(lines[1]) else { return nil }
        let rest = lines[2...]
        let socket = rest.first.flatMap { $0.hasPrefix(Self.socketMark) ? $0.dropFirst(Self.socketMark.count) : nil }
        let refusals = socket == nil ? rest : rest.dropFirst()
        guard refusals.count <= 1 else { return nil }
        self.init(configuration: String(lines[0]), count: count, refusal: refusals.first.map(String.init))
        self.socket = socket.map(String.init)
    }
}

extension ReloadRecord {
    private static let prefix = "reload."

    /// Returns the absolute path, which is equal for a daemon and a command in any directory.
    static func path(ofConfiguration path: String) -> String { FileSystem.resolved(path) ?? path }

    /// Returns the record of a process; `nil` if it has none.
    static func of(_ process: pid_t, in directory: String) -> ReloadRecord? {
        guard let directory = try? JudgedDirectory(of: path(of: process, in: directory), followingLast: false),
            let file = try? directory.open(directory.name, O_RDONLY),
            isMade(file, by: process), let bytes = try? file.readAll(limit: 65_536)
        else { return nil }
        return ReloadRecord(String(decoding: bytes, as: UTF8.self))
    }

    /// Returns true if the process may have made the file: root signals the process, and asks at the socket of the record.
    ///
    /// Another user of the directory could name any process. The kernel refuses the signals of other users than root.
    private static func isMade(_ file: borrowing Descriptor, by process: pid_t) -> Bool {
        guard geteuid() == 0 else { return true }
        guard let owner = try? file.status().st_uid else { return false }
        return ProcessOwner.uid(of: process) == owner
    }

    /// Returns the running processes that have a record.
    static func processes(in directory: String) -> [pid_t] {
        var found: [pid_t] = []
        let names = try? JudgedDirectory(at: directory).names()
        for name in names ?? [] where name.hasPrefix(prefix) {
            guard let process = pid_t(name.dropFirst(prefix.count)) else { continue }
            if isRunning(process) { found.append(process) }
        }
        return found.sorted()
    }

    /// True if the process exists.
    static func isRunning(_ process: pid_t) -> Bool { kill(process, 0) == 0 || errno == EPERM }

    /// Replaces the record of the process atomically. After a failure, only the log has the outcome of a reload.
    func write(of process: pid_t, in directory: String) {
        guard let directory = try? JudgedDirectory(of: Self.path(of: process, in: directory), followingLast: false)
        else {
            return
        }
        let temporary = directory.name + "~"
        // Another user of the directory may have placed a pipe there, whose opening would wait for a reader.
        try? directory.remove(temporary)
        do throws(SystemError) {
            try directory.create(temporary).writeAll(Array(text.utf8))
            try directory.rename(temporary, to: directory.name)
        } catch {
            try? directory.remove(temporary)
        }
    }

    /// Removes the record of a process.
    static func remove(of process: pid_t, in directory: String) {
        let directory = try? JudgedDirectory(of: path(of: process, in: directory), followingLast: false)
        if let directory { try? directory.remove(directory.name) }
    }

    private static func path(of process: pid_t, in directory: String) -> String { "\(directory)/\(prefix)\(process)" }
}

extension String {
    /// The text with each control character replaced by a space.
    var onOneLine: String {
        String(String.UnicodeScalarView(unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
