// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Glibc

/// A directory that was opened once, and the name of a file in it.
///
/// Root works on files of a service whose user it need not trust. That user may place links, pipes and second names of other
/// files there, at any moment. Root therefore follows a link only if no other user can have placed it, and opens a file only
/// if no other user can have chosen which one it is. What happens to the path later has no effect.
///
/// For other users nothing is judged: they have no rights that the owner of the directory lacks.
package struct JudgedDirectory: Sendable {
    private let folder: Folder
    /// The name of the file. A link of that name was followed only if `followingLast` was set.
    package let name: String
    /// True if no other user can lead the path elsewhere.
    private let isFixed: Bool

    /// Opens the directory of `path`, whose last component need not exist.
    ///
    /// With `followingLast`, a link at `path` itself is followed as well. Throws `ELOOP` for a link that another user may have placed.
    package init(of path: String, followingLast: Bool) throws(SystemError) {
        if geteuid() == 0 {
            (folder, name, isFixed) = try Folder.walk(path, followingLast: followingLast)
        } else {
            let target = followingLast ? FileSystem.realPath(of: path) ?? path : path
            folder = try Folder(opening: FileSystem.parent(of: target))
            name = target.split(separator: "/").last.map(String.init) ?? "."
            isFixed = true
        }
    }

    /// Opens the directory at `path` itself; its name is `.`.
    package init(at path: String) throws(SystemError) {
        if geteuid() == 0 {
            // Without a name at its end, all links of the path are followed.
            (folder, name, isFixed) = try Folder.walk("\(path)/.", followingLast: false)
        } else {
            (folder, name, isFixed) = (try Folder(opening: path), ".", true)
        }
    }

    /// The owner, if no other user can change the names in the directory; else nil.
    package var exclusiveOwner: uid_t? { folder.status.st_mode & 0o022 == 0 ? folder.status.st_uid : nil }

    /// True if this process is root, and another user can change the names in the directory.
    package var isForeign: Bool { geteuid() == 0 && exclusiveOwner != 0 }

    /// Returns `path`, from which the directory was opened; through the open directory (proc(5)) if another user could lead
    /// `path` elsewhere.
    package func stable(_ path: String) -> String {
        isFixed && !isForeign ? path : "/proc/self/fd/\(folder.descriptor.number)/\(name)"
    }

    /// Returns the status of a name, of the link itself if it is one.
    package func status(of name: String) throws(SystemError) -> stat { try folder.status(of: name) }

    /// Returns the text of a link. Throws `ELOOP` if root must not follow the link.
    package func target(ofLink name: String) throws(SystemError) -> String {
        if geteuid() == 0, try !folder.trusts(link: folder.status(of: name)) { throw SystemError(code: ELOOP) }
        return try folder.target(of: name)
    }

    /// Creates a file. Throws `EEXIST` if the name is in use.
    package func create(
        _ name: String, _ flags: Int32 = O_WRONLY, mode: mode_t = 0o600
    ) throws(SystemError) -> Descriptor {
        try folder.open(name, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode: mode)
    }

    /// Opens an existing file, without waiting for the other end of a pipe. A link is refused (`ELOOP`).
    ///
    /// In another user's directory, root also refuses a pipe or device (`ENXIO`; a pipe only unless `allowsPipe`), and a second name of
    /// a file that is not that user's (`EMLINK`).
    package func open(_ name: String, _ flags: Int32, allowsPipe: Bool = false) throws(SystemError) -> Descriptor {
        let file = try folder.open(name, flags | O_NOFOLLOW | O_NONBLOCK)
        try judge(file, as: name, allowsPipe: allowsPipe)
        return file
    }

    /// Opens the name itself, whatever it is, to examine it: not for reading or writing, and no link is followed.
    func openName() throws(SystemError) -> Descriptor { try folder.open(name, Folder.lookup | O_NOFOLLOW) }

    /// Opens the file as a lock, which is created with mode 0600 if missing.
    ///
    /// Only a file that root has just created changes its owner.
    package func openLock() throws(SystemError) -> Descriptor {
        try openOrCreate { () throws(SystemError) in
            let file = try create(name, O_RDWR)
            try adoptOwner(file)
            return file
        } opening: { () throws(SystemError) in
            try open(name, O_RDWR)
        }
    }

    /// Opens the file for appending, without waiting for the reader of a pipe. It is created with `mode` if missing.
    ///
    /// A new file of root belongs to the directory's owner if that is another user.
    package func openLog(mode: mode_t) throws(SystemError) -> Descriptor {
        try openOrCreate { () throws(SystemError) in
            let file = try create(name, O_WRONLY | O_APPEND | O_NONBLOCK, mode: mode)
            if folder.status.st_uid != 0 { try adoptOwner(file) }
            return file
        } opening: { () throws(SystemError) in
            do throws(SystemError) {
                return try open(name, O_WRONLY | O_APPEND, allowsPipe: true)
            } catch {
                // A named pipe without a reader can be opened only for both directions, and then buffers bytes up to its capacity.
                guard error.code == ENXIO else { throw error }
                return try open(name, O_RDWR | O_APPEND, allowsPipe: true)
            }
        }
    }

    /// Transfers a file that root has just created to the owner of the file `name`, else to that of the directory.
    package func adoptOwner(_ file: borrowing Descriptor, of name: String? = nil) throws(SystemError) {
        guard geteuid() == 0 else { return }
        var model = try folder.descriptor.status()
        if let name, let found = try? status(of: name), found.st_mode & S_IFMT == S_IFREG { model = found }
        _ = try systemCall { [number = file.number] in fchown(number, model.st_uid, model.st_gid) }
    }

    /// Renames a file within the directory, replacing any file of the new name.
    package func rename(_ old: String, to new: String) throws(SystemError) {
        let number = folder.descriptor.number
        try systemCall { unsafe renameat(number, old, number, new) }
    }

    /// Gives a file of the directory a second name, which must be free.
    package func link(_ old: String, to new: String) throws(SystemError) {
        let number = folder.descriptor.number
        try systemCall { unsafe linkat(number, old, number, new, 0) }
    }

    /// Removes a name of the directory.
    package func remove(_ name: String) throws(SystemError) {
        let number = folder.descriptor.number
        try systemCall { unsafe unlinkat(number, name, 0) }
    }

    /// Makes a directory of the name `name` in this one.
    package func makeDirectory(mode: mode_t) throws(SystemError) {
        let number = folder.descriptor.number
        try systemCall { unsafe mkdirat(number, name, mode) }
    }

    /// Returns the sorted names in the directory, besides `.` and `..`.
    package func names() throws(SystemError) -> [String] { try DirectoryListing.names(in: reopened()) }

    /// Opens the directory for reading, as fsync(2) and a listing need it.
    package func reopened() throws(SystemError) -> Descriptor { try folder.open(".", O_RDONLY | O_DIRECTORY) }

    /// Throws unless the open file was chosen by root or by the owner of the file.
    private func judge(_ file: borrowing Descriptor, as name: String, allowsPipe: Bool) throws(SystemError) {
        guard isForeign else { return }
        let opened = try file.status()
        let type = opened.st_mode & S_IFMT
        guard type == S_IFREG || allowsPipe && type == S_IFIFO else { throw SystemError(code: ENXIO) }
        let owner = folder.status.st_uid
        if owner != 0, opened.st_uid == owner { return }
        // Another's file, perhaps one of the system: only if it has no name besides this one.
        let named = try status(of: name)
        guard named.st_nlink == 1, named.st_dev == opened.st_dev, named.st_ino == opened.st_ino else {
            throw SystemError(code: EMLINK)
        }
    }

    /// Creates or opens a file, whichever works while another process removes or creates it.
    private func openOrCreate(
        creating: () throws(SystemError) -> Descriptor, opening: () throws(SystemError) -> Descriptor
    ) throws(SystemError) -> Descriptor {
        for _ in 0..<8 {
            do throws(SystemError) {
                return try opening()
            } catch {
                guard error.code == ENOENT else { throw error }
            }
            do throws(SystemError) {
                return try creating()
            } catch {
                guard error.code == EEXIST else { throw error }
            }
        }
        throw SystemError(code: EAGAIN)
    }
}

extension JudgedDirectory {
    /// Returns the reason of a refusal, and the remedy, for its error number; nil for other errors.
    package static func refusal(_ code: Int32) -> String? {
        switch code {
        case ELOOP:
            "a symbolic link on the path leads in a circle, or another user may have made it; use the path without links"
        case EMLINK:
            "the file has a second name (hard link), which another user may have made; remove one of the names"
        case ENXIO: "it is a pipe, a socket or a device; remove it"
        default: nil
        }
    }
}
