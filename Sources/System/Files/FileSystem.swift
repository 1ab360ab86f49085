// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Glibc

/// Calls about files by path, with errors in place of `errno`.
package enum FileSystem {
    /// Returns the status of the file at `path`, or of the target if it is a link.
    package static func status(of path: String) throws(SystemError) -> stat {
        var status = stat()
        try systemCall { unsafe stat(path, &status) }
        return status
    }

    /// Returns the status of the file at `path`, or of the link itself if it is one.
    package static func linkStatus(of path: String) throws(SystemError) -> stat {
        var status = stat()
        try systemCall { unsafe lstat(path, &status) }
        return status
    }

    /// The status of an open file.
    package static func status(of descriptor: Int32) throws(SystemError) -> stat {
        var status = stat()
        try systemCall { unsafe fstat(descriptor, &status) }
        return status
    }

    /// Throws unless this process has the access `mode` to the file: `R_OK`, `W_OK`, `X_OK`, or `F_OK` for its
    /// existence.
    package static func checkAccess(_ path: String, _ mode: Int32) throws(SystemError) {
        try systemCall { unsafe access(path, mode) }
    }

    /// Returns the path with all symbolic links followed; nil if this fails.
    package static func resolved(_ path: String) -> String? {
        guard let found = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }

    /// Returns true if this process may use a file in this mode (access(2)).
    package static func allows(_ path: String, _ mode: Int32) -> Bool { unsafe access(path, mode) == 0 }

    /// Opens `path`, closed on exec; the caller closes the descriptor.
    package static func open(_ path: String, _ flags: Int32, mode: mode_t = 0) throws(SystemError) -> Int32 {
        try Descriptor(opening: path, flags, mode: mode).release()
    }

    /// Returns the bytes of a file, at most `limit`. Files in /proc do not report their length.
    package static func contents(of path: String, limit: Int, flags: Int32 = 0) throws(SystemError) -> [UInt8] {
        let file = try Descriptor(opening: path, O_RDONLY | flags)
        var bytes: [UInt8] = []
        while bytes.count < limit {
            let more = try DescriptorIO.read(from: file.number, atMost: min(65_536, limit - bytes.count))
            if more.isEmpty { break }
            bytes += more
        }
        return bytes
    }

    /// Writes a new file with `mode`, replacing any file of that name; a link is refused.
    package static func write(_ bytes: [UInt8], to path: String, mode: mode_t) throws(SystemError) {
        let file = try Descriptor(opening: path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: mode)
        try file.writeAll(bytes)
    }

    /// Returns the path of the directory that has the last component of `path`.
    package static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Removes a name.
    package static func remove(_ path: String) throws(SystemError) { try systemCall { unsafe unlink(path) } }

    /// Renames a file, replacing any file of the new name.
    package static func rename(_ path: String, to other: String) throws(SystemError) {
        try systemCall { unsafe Glibc.rename(path, other) }
    }

    /// Gives a file a second name, which must be free.
    package static func link(_ path: String, to other: String) throws(SystemError) {
        try systemCall { unsafe Glibc.link(path, other) }
    }

    /// Makes a directory.
    package static func makeDirectory(_ path: String, mode: mode_t) throws(SystemError) {
        try systemCall { unsafe mkdir(path, mode) }
    }

    /// Changes the permissions of a file.
    package static func setMode(_ mode: mode_t, of path: String) throws(SystemError) {
        try systemCall { unsafe chmod(path, mode) }
    }

    /// The text of a symbolic link.
    package static func target(ofLink path: String) throws(SystemError) -> String {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = try systemCall { unsafe readlink(path, &bytes, bytes.count) }
        guard count < bytes.count else { throw SystemError(code: ENAMETOOLONG) }
        return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Returns the path with all symbolic links followed; nil if this fails.
    package static func realPath(of path: String) -> String? {
        guard let real = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(real) }
        return unsafe String(cString: real)
    }
}

/// The entries of a directory.
package enum DirectoryListing {
    /// Returns the sorted names in `directory` besides `.` and `..`; nil, with `errno` set, if the directory cannot be
    /// read.
    package static func names(in directory: String, atMost limit: Int = .max) -> [String]? {
        guard let stream = unsafe opendir(directory) else { return nil }
        return try? unsafe names(stream, atMost: limit)
    }

    /// Returns the sorted names in an open directory, besides `.` and `..`.
    static func names(in directory: consuming Descriptor) throws(SystemError) -> [String] {
        // The stream closes the descriptor.
        let number = directory.release()
        guard let stream = unsafe fdopendir(number) else {
            let error = SystemError.last
            close(number)
            throw error
        }
        return try unsafe names(stream, atMost: .max)
    }

    private static func names(_ stream: OpaquePointer, atMost limit: Int) throws(SystemError) -> [String] {
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while names.count < limit {
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                // A part of the names must not pass for all of them.
                if errno != 0 { throw SystemError.last }
                break
            }
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { field in
                unsafe String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}

/// Directory with the lifetime of a command or a test.
package enum TemporaryDirectory {
    /// Makes a directory in /tmp with a name that begins with `prefix`; only this user may enter it. Returns the path.
    package static func make(prefix: String) throws(SystemError) -> String {
        var template = Array("/tmp/\(prefix)-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw .last }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Removes the directory with its content. Links in it are removed, not followed.
    package static func remove(_ path: String) {
        for name in DirectoryListing.names(in: path) ?? [] {
            let child = "\(path)/\(name)"
            if unsafe unlink(child) != 0 { remove(child) }
        }
        unsafe rmdir(path)
    }
}
