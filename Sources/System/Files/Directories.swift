// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The entries of a directory.
package enum DirectoryListing {
    /// Returns the sorted names in `directory` besides `.` and `..`; nil, with `errno` set, if the directory cannot be
    /// read.
    package static func names(in directory: String, atMost limit: Int = .max) -> [String]? {
        guard let stream = unsafe opendir(directory) else { return nil }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while names.count < limit, let entry = unsafe readdir(stream) {
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
