// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// An open directory, and its status at that time.
///
/// It is opened for the lookup of names only (`O_PATH`, open(2)), which needs no right to read it.
final class Folder: Sendable {
    /// O_PATH, which Swift's Glibc does not export.
    static let lookup: Int32 = 0o10_000_000
    /// The number of links that a path may have, as in the kernel (path_resolution(7)).
    private static let maximumLinks = 40

    let descriptor: Descriptor
    let status: stat

    init(opening path: String) throws(SystemError) {
        descriptor = try Descriptor(opening: path, Self.lookup | O_DIRECTORY)
        status = try descriptor.status()
    }

    private init(_ name: String, in folder: Folder) throws(SystemError) {
        descriptor = try folder.open(name, Self.lookup | O_DIRECTORY | O_NOFOLLOW)
        status = try descriptor.status()
    }

    /// Opens one component of a path after the other; returns the last directory, and the name in it.
    ///
    /// `..` is the directory from which the walk came: another user may have moved the present one meanwhile. `isFixed` is true if no
    /// other user can lead the path elsewhere. `onStep` is called before each component is opened, to change the folder in a test.
    static func walk(
        _ path: String, followingLast: Bool, onStep: (String) -> Void = { _ in }
    ) throws(SystemError) -> (folder: Folder, name: String, isFixed: Bool) {
        let start = try Folder(opening: path.hasPrefix("/") ? "/" : ".")
        var (current, parents): (Folder, [Folder]) = (start, [])
        var rest = Array(components(path).reversed())
        var links = 0
        var isFixed = true
        while let component = rest.popLast() {
            isFixed = isFixed && current.keepsNamesOfRoot
            if component == "." { continue }
            if component == ".." {
                onStep(component)
                if let parent = parents.popLast() {
                    current = parent
                } else {
                    current = try Folder("..", in: current)
                }
                continue
            }
            if rest.isEmpty, !followingLast { return (current, component, isFixed) }
            let found: stat
            do throws(SystemError) {
                found = try current.status(of: component)
            } catch {
                guard rest.isEmpty, error.code == ENOENT else { throw error }
                return (current, component, isFixed)
            }
            if found.st_mode & S_IFMT == S_IFLNK {
                links += 1
                guard links <= maximumLinks, current.trusts(link: found) else { throw SystemError(code: ELOOP) }
                let target = try current.target(of: component)
                if target.hasPrefix("/") { (current, parents) = (try Folder(opening: "/"), []) }
                rest += components(target).reversed()
            } else if rest.isEmpty {
                return (current, component, isFixed)
            } else {
                onStep(component)
                parents.append(current)
                current = try Folder(component, in: current)
            }
        }
        return (current, ".", isFixed && current.keepsNamesOfRoot)
    }

    /// True if no other user can rename what belongs to root in this directory.
    private var keepsNamesOfRoot: Bool {
        status.st_uid == 0 && (status.st_mode & 0o022 == 0 || status.st_mode & S_ISVTX != 0)
    }

    /// Returns true if only root can have placed a link of that status in this directory.
    ///
    /// In a directory such as /tmp, others cannot rename a link of root, but may have given another one a second name there.
    func trusts(link: stat) -> Bool {
        guard status.st_uid == 0, link.st_uid == 0 else { return false }
        return status.st_mode & 0o022 == 0 || status.st_mode & S_ISVTX != 0 && link.st_nlink == 1
    }

    /// Opens a name, closed on exec.
    func open(_ name: String, _ flags: Int32, mode: mode_t = 0) throws(SystemError) -> Descriptor {
        let number = descriptor.number
        return Descriptor(owning: try systemCall { unsafe openat(number, name, flags | O_CLOEXEC | O_NOCTTY, mode) })
    }

    /// Returns the status of a name, of the link itself if it is one.
    func status(of name: String) throws(SystemError) -> stat {
        var status = stat()
        let number = descriptor.number
        try systemCall { unsafe fstatat(number, name, &status, AT_SYMLINK_NOFOLLOW) }
        return status
    }

    /// Returns the text of a link.
    func target(of name: String) throws(SystemError) -> String {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let number = descriptor.number
        let count = try systemCall { unsafe readlinkat(number, name, &bytes, bytes.count) }
        guard count < bytes.count else { throw SystemError(code: ENAMETOOLONG) }
        return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func components(_ path: String) -> [String] {
        path.split(separator: "/").map(String.init)
    }
}
