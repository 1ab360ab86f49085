// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The entries of a directory.
package enum DirectoryListing {
    /// The names in `directory` besides `.` and `..`, in order; `nil` if it cannot be read, and then `errno` says why.
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

/// A directory that lasts as long as a command or a test.
package enum TemporaryDirectory {
    /// Makes one in /tmp, whose name begins with `prefix` and that only this user may enter; returns its path.
    package static func make(prefix: String) throws(SystemError) -> String {
        var template = Array("/tmp/\(prefix)-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw .last }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Removes the directory with all that it holds; links in it are removed and not followed.
    package static func remove(_ path: String) {
        for name in DirectoryListing.names(in: path) ?? [] {
            let child = "\(path)/\(name)"
            if unsafe unlink(child) != 0 { remove(child) }
        }
        unsafe rmdir(path)
    }
}
