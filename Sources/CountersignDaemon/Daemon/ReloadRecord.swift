// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// What became of the reloads of a running daemon: a small file in the runtime directory, from which `countersign reload` learns
/// how its own ended.
///
/// A file and not a call at the admin listener, because that may be closed to changes, and because a configuration with
/// errors does not tell where it is. One for each process: those of a demonstration and of the service may meet there.
struct ReloadRecord: Equatable {
    /// The configuration that the daemon reads, as it was named.
    var configuration: String
    /// How many reloads are over.
    var count: Int
    /// Why the last one was refused; nil where it was not.
    var refusal: String?

    /// The lines of the file.
    var text: String {
        ([configuration, String(count)] + (refusal.map { [$0] } ?? [])).map { $0.onOneLine + "\n" }.joined()
    }

    init(configuration: String, count: Int, refusal: String?) {
        self.configuration = configuration
        self.count = count
        self.refusal = refusal
    }

    /// What the file holds; nil where that is no record.
    init?(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        guard lines.count == 2 || lines.count == 3, let count = Int(lines[1]) else { return nil }
        self.init(
            configuration: String(lines[0]), count: count, refusal: lines.count == 3 ? String(lines[2]) : nil)
    }
}

extension ReloadRecord {
    private static let prefix = "reload."

    /// The record of a process; nil where there is none.
    static func of(_ process: pid_t, in directory: String) -> ReloadRecord? {
        guard let file = unsafe fopen(path(of: process, in: directory), "re") else { return nil }
        defer { unsafe fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe fread(&bytes, 1, bytes.count, file)
        return ReloadRecord(String(decoding: bytes[..<count], as: UTF8.self))
    }

    /// The processes with a record that still run.
    static func processes(in directory: String) -> [pid_t] {
        guard let stream = unsafe opendir(directory) else { return [] }
        defer { unsafe closedir(stream) }
        var found: [pid_t] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { field in
                unsafe String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasPrefix(prefix), let process = pid_t(name.dropFirst(prefix.count)) else { continue }
            if isRunning(process) { found.append(process) }
        }
        return found.sorted()
    }

    /// Whether there is such a process.
    static func isRunning(_ process: pid_t) -> Bool { kill(process, 0) == 0 || errno == EPERM }

    /// Puts it in the place of the one before, at once. Where that fails nobody learns how a reload ended but from the log.
    func write(of process: pid_t, in directory: String) {
        let path = Self.path(of: process, in: directory)
        let temporary = path + "~"
        let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        let bytes = Array(text.utf8)
        let written = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
        close(descriptor)
        guard written == bytes.count, unsafe rename(temporary, path) == 0 else {
            unsafe unlink(temporary)
            return
        }
    }

    /// Removes that of a process.
    static func remove(of process: pid_t, in directory: String) {
        unsafe unlink(path(of: process, in: directory))
    }

    private static func path(of process: pid_t, in directory: String) -> String { "\(directory)/\(prefix)\(process)" }
}

extension String {
    /// The text without line breaks and other signs that steer.
    var onOneLine: String {
        String(String.UnicodeScalarView(unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
    }
}
