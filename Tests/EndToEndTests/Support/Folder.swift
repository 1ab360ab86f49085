// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A folder of a test's own, removed with its contents when the last reference is gone.
final class Folder: Sendable {
    /// Its path, short enough for the path of a socket below it.
    let path: String

    /// Creates a new folder that only its owner may enter.
    init() throws {
        var template = Array("/tmp/cse2e-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw ChildError(description: "no folder in /tmp: \(errno)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { removeAll() }

    /// Removes the folder now, not only when the last thread has released it, which may be after the end of the tests.
    ///
    /// With COUNTERSIGN_KEEP=1 everything stays, to find the reason of a failure.
    func removeAll() {
        if unsafe getenv("COUNTERSIGN_KEEP") == nil { remove(path) }
    }

    /// Returns the path of a file or folder in it.
    func path(of name: String) -> String { "\(path)/\(name)" }

    /// Makes a folder in it.
    func makeFolder(_ name: String, mode: mode_t = 0o700) { unsafe mkdir(path(of: name), mode) }

    /// Writes a file, replacing an older one; readable by its owner only, unless another mode is given.
    @discardableResult
    func write(_ text: String, to name: String, mode: mode_t = 0o600) -> String {
        write(Array(text.utf8), to: name, mode: mode)
    }

    /// Writes a file of bytes.
    @discardableResult
    func write(_ bytes: [UInt8], to name: String, mode: mode_t = 0o600) -> String {
        let file = path(of: name)
        unsafe unlink(file)
        let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            rest = rest.dropFirst(count)
        }
        close(descriptor)
        return file
    }

    /// Returns the bytes of a file; empty if there is no such file.
    func bytes(of name: String) -> [UInt8] { readFile(path(of: name)) }

    /// Returns the text of a file.
    func text(of name: String) -> String { String(decoding: bytes(of: name), as: UTF8.self) }

    /// The paths of all files in it, at any depth.
    var files: [String] { filesBelow(path) }
}

/// Returns the bytes of a file, of any kind (`/proc` too); empty if there is no such file.
func readFile(_ path: String) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = unsafe read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return bytes }
        bytes += buffer[..<count]
    }
}

/// Returns the names in a folder.
func entries(of path: String) -> [String] {
    guard let directory = unsafe opendir(path) else { return [] }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
        let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { field in
            unsafe String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

private func isFolder(_ path: String) -> Bool {
    var status = stat()
    return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
}

private func filesBelow(_ path: String) -> [String] {
    entries(of: path).flatMap { name in
        let child = "\(path)/\(name)"
        return isFolder(child) ? filesBelow(child) : [child]
    }
}

/// Removes a file, or a folder with all that is in it.
func remove(_ path: String) {
    for name in entries(of: path) {
        let child = "\(path)/\(name)"
        if isFolder(child) { remove(child) } else { unsafe unlink(child) }
    }
    unsafe rmdir(path)
}
