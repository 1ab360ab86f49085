// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A folder that lasts as long as a command.
enum TemporaryFolder {
    /// Makes one that only this user may enter; returns its path.
    static func make(_ purpose: String) throws -> String {
        var template = Array("/tmp/countersign-\(purpose)-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else {
            throw Failure(
                "no folder can be made in /tmp: \(unsafe String(cString: strerror(errno)))", code: EX_UNAVAILABLE)
        }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Removes it with all that it holds.
    static func remove(_ path: String) {
        guard let directory = unsafe opendir(path) else { return }
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { field in
                unsafe String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name != ".", name != ".." else { continue }
            let child = "\(path)/\(name)"
            if unsafe unlink(child) != 0 { remove(child) }
        }
        unsafe closedir(directory)
        unsafe rmdir(path)
    }
}
