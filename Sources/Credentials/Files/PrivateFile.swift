// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import Secrets

/// A file that holds secrets or the key to them: read whole, up to a limit, and only where nobody else can have read
/// or written it.
struct PrivateFile {
    /// Whose files are trusted, and how closed they have to be.
    enum Trust: Equatable {
        /// No group or other bits, and owned by this process's user or root.
        case ownerOnly
        /// As `ownerOnly`; but root also trusts the owner of the directory. For an administrator who works on the
        /// files of a service that runs as its own user.
        case ownerOnlyOrDirectory
        /// As `ownerOnly`; but root also trusts the owner of this other directory, which no other user can have made, for files
        /// in directories of that owner or of root.
        case ownerOnlyOrOwner(of: String)
        /// Whoever handed it over answers for it: systemd's credentials directory, whose access list shows as group bits.
        case given
    }

    /// What tells one state of a file from the next.
    struct Identity: Equatable {
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let seconds: Int
        let nanoseconds: Int
    }

    /// Where it is.
    let path: String
    /// Whose it may be.
    var trust: Trust = .ownerOnly
    /// How large it may be, in bytes.
    var limit: Int = 1 << 20

    /// The whole content.
    func read() throws(FileFault) -> Secret {
        try readWithIdentity().content
    }

    /// The whole content, and which state of the file it is of.
    func readWithIdentity() throws(FileFault) -> (content: Secret, identity: Identity) {
        do {
            // Non-blocking, lest a named pipe in its place hold us up.
            let descriptor = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK)
            let status = try descriptor.status()
            if let fault = fault(of: status) { throw fault }
            var bytes = try descriptor.readAll(limit: limit, expecting: Int(status.st_size))
            guard bytes.count <= limit else { throw tooLarge }
            return (Secret(taking: &bytes), Identity(status))
        } catch let fault as FileFault {
            throw fault
        } catch let error as SystemError {
            throw .system("read", path, error.code)
        } catch {
            throw FileFault(.failed, "cannot read \(path)")
        }
    }

    /// Which state the file is in now.
    func identity() throws(FileFault) -> Identity {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw .system("read", path, errno) }
        return Identity(status)
    }

    private var tooLarge: FileFault {
        FileFault(.tooLarge, "\(path) is larger than \(limit) bytes; it cannot be what it should be")
    }

    /// Why a file of that status is not to be used, if so.
    private func fault(of status: stat) -> FileFault? {
        guard status.st_mode & S_IFMT == S_IFREG else { return FileFault(.failed, "\(path) is not a regular file") }
        guard status.st_size <= limit else { return tooLarge }
        if trust == .given { return nil }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            return FileFault(
                .exposed, "\(path) has mode 0\(mode), so that others may use it; run: chmod 600 \(path)")
        }
        guard trusts(owner: status.st_uid) else {
            return FileFault(.exposed, "\(path) is owned by uid \(status.st_uid); \(Self.advice)")
        }
        return nil
    }

    /// A file of another user may be the daemon's own: root must not be told to take it away from it.
    private static var advice: String {
        geteuid() == 0
            ? "root uses its own files, and those that the daemon's user has where its state is. Look whose file it is; if it is "
                + "that of a service, run this as that user"
            : "only files of uid \(geteuid()) or root are used. Give it to one of them, or pass it by LoadCredential= of the unit"
    }

    private func trusts(owner: uid_t) -> Bool {
        if owner == 0 || owner == geteuid() { return true }
        guard geteuid() == 0, let directory = Self.owned(parentDirectory(of: path)) else { return false }
        switch trust {
        case .ownerOnlyOrDirectory: return directory == owner
        case .ownerOnlyOrOwner(let state): return [owner, 0].contains(directory) && Self.owned(state) == owner
        case .ownerOnly, .given: return false
        }
    }

    /// The owner of a directory that nobody else may write to.
    private static func owned(_ directory: String) -> uid_t? {
        var status = stat()
        guard unsafe stat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_mode & 0o022 == 0
        else {
            return nil
        }
        return status.st_uid
    }
}

extension PrivateFile.Identity {
    init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }
}

/// The directory that `path` is in.
func parentDirectory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
}
