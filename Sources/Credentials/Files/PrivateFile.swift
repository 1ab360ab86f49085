// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import Secrets
internal import System

/// A file with secrets, read as a whole up to a limit.
///
/// A file that another user could have read or written is refused.
struct PrivateFile {
    /// The trusted owners of a file, and its required mode.
    enum Trust: Equatable {
        /// No group or other permissions, and owned by this process's user or by root.
        case ownerOnly
        /// As `ownerOnly`, but root also trusts the owner of the directory.
        ///
        /// For an administrator who works on the files of a service that runs as another user.
        case ownerOnlyOrDirectory
        /// As `ownerOnly`, but root also trusts the owner of this other directory.
        ///
        /// No other user can have created that directory. Applies to files in directories of that owner or of root.
        case ownerOnlyOrOwner(of: String)
        /// Not checked, as in systemd's credentials directory, whose access list appears as group bits.
        case unchecked
    }

    /// Attributes that identify one state of a file.
    struct Identity: Equatable {
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let seconds: Int
        let nanoseconds: Int
    }

    /// The path of the file.
    let path: String
    /// The trusted owners.
    var trust: Trust = .ownerOnly
    /// The maximum size in bytes.
    var limit: Int = 1 << 20

    /// Reads the whole content.
    func read() throws(FileFault) -> Secret {
        try readWithIdentity().content
    }

    /// Reads the whole content, with the identity of the file.
    func readWithIdentity() throws(FileFault) -> (content: Secret, identity: Identity) {
        do throws(FileFault) {
            return try readOnce()
        } catch {
            // A volume of Kubernetes replaces a link on the path, and removes its former target at once.
            guard error.kind == .missing, geteuid() == 0 else { throw error }
            return try readOnce()
        }
    }

    private func readOnce() throws(FileFault) -> (content: Secret, identity: Identity) {
        do {
            let directory = try directory()
            // Non-blocking, because a named pipe at this path would block.
            let descriptor =
                if let directory { try directory.open(directory.name, O_RDONLY) } else {
                    try Descriptor(opening: path, O_RDONLY | O_NONBLOCK)
                }
            let status = try descriptor.status()
            if let fault = fault(of: status, in: directory) { throw fault }
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

    /// Returns the current identity of the file.
    func identity() throws(FileFault) -> Identity {
        do throws(SystemError) {
            guard let directory = try directory() else { return Identity(try FileSystem.status(of: path)) }
            return Identity(try directory.status(of: directory.name))
        } catch {
            throw .system("read", path, error.code)
        }
    }

    /// Returns the directory for root, who does not trust each user that may change it; nil for other users.
    private func directory() throws(SystemError) -> JudgedDirectory? {
        geteuid() == 0 ? try JudgedDirectory(of: path, followingLast: true) : nil
    }

    private var tooLarge: FileFault {
        FileFault(.tooLarge, "\(path) is larger than the limit of \(limit) bytes; check the path")
    }

    /// Returns the fault of a file with that status, if any.
    private func fault(of status: stat, in directory: JudgedDirectory?) -> FileFault? {
        guard status.st_mode & S_IFMT == S_IFREG else { return FileFault(.failed, "\(path) is not a regular file") }
        guard status.st_size <= limit else { return tooLarge }
        if trust == .unchecked { return nil }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            return FileFault(
                .exposed, "\(path) has mode 0\(mode), which gives other users access; run: chmod 600 \(path)")
        }
        guard trusts(owner: status.st_uid, in: directory) else {
            return FileFault(.exposed, "\(path) is owned by uid \(status.st_uid); \(Self.advice)")
        }
        return nil
    }

    /// The advice for a file of an untrusted owner.
    ///
    /// The file may be the daemon's own, so root is not advised to change its owner.
    private static var advice: String {
        geteuid() == 0
            ? "root uses only its own files and those of the daemon's user. Check the owner; if the file belongs to a service, "
                + "run this command as the user of that service"
            : "only files of uid \(geteuid()) or root are used. Change the owner, or pass the file with LoadCredential= in the unit"
    }

    private func trusts(owner: uid_t, in directory: JudgedDirectory?) -> Bool {
        if owner == 0 || owner == geteuid() { return true }
        guard let holder = directory?.exclusiveOwner else { return false }
        switch trust {
        case .ownerOnlyOrDirectory: return holder == owner
        case .ownerOnlyOrOwner(let state): return [owner, 0].contains(holder) && Self.owner(of: state) == owner
        case .ownerOnly, .unchecked: return false
        }
    }

    /// Returns the owner of a directory that no other user can write to.
    private static func owner(of directory: String) -> uid_t? {
        (try? JudgedDirectory(at: directory))?.exclusiveOwner
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

/// The users, besides root and this process's user, whose private files are trusted.
///
/// Files that systemd passes to the unit are not checked. A command that root runs next to a service with another user
/// also trusts that user's files. The user is the owner of the state directory, which no other user can create, so no
/// other user can provide a file to root.
package struct FileTrust: Sendable {
    private let credentials: String?
    private let state: String?

    /// Trust in files of root and of this process's user only.
    package static let none = FileTrust(environment: [:])

    /// Creates the trust for `CREDENTIALS_DIRECTORY` of `environment`, and for the owner of the directory `state`.
    package init(environment: [String: String], state: String? = nil) {
        let given = environment["CREDENTIALS_DIRECTORY"] ?? ""
        credentials = given.hasPrefix("/") ? given : nil
        self.state = state
    }

    func trust(in path: String) -> PrivateFile.Trust {
        if let credentials, FileSystem.parent(of: path) == credentials { return .unchecked }
        return state.map { .ownerOnlyOrOwner(of: $0) } ?? .ownerOnly
    }
}

/// A failure to read or write a file, in words for an operator. Callers convert it to their own error.
struct FileFault: Error, Equatable {
    /// The kinds of faults.
    enum Kind: Equatable {
        /// The file does not exist.
        case missing
        /// The system denied access.
        case denied
        /// Other users can access the file, or its owner is not trusted.
        case exposed
        /// The file exceeds the size limit.
        case tooLarge
        /// Another failure.
        case failed
    }

    /// The kind of fault.
    var kind: Kind
    /// The reason, the path, and the remedy.
    var reason: String

    init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    /// Returns the fault for `errno` after an `action` ("read", "create", …) on `path`.
    static func system(_ action: String, _ path: String, _ code: Int32) -> FileFault {
        if let refusal = JudgedDirectory.refusal(code) {
            return FileFault(code == ENXIO ? .failed : .exposed, "cannot \(action) \(path): \(refusal)")
        }
        switch code {
        case ENOENT, ENOTDIR:
            return FileFault(.missing, "cannot \(action) \(path): no such file or directory; check the path")
        case EACCES, EPERM, EROFS:
            return FileFault(
                .denied,
                "cannot \(action) \(path): \(SystemError.message(code)); check the owner of the file and of its directory"
            )
        default:
            return FileFault(.failed, "cannot \(action) \(path): \(SystemError.message(code))")
        }
    }
}
