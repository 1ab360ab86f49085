// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Why a file could not be read or written, in words for an operator. Its users turn it into their own error.
struct FileFault: Error, Equatable {
    /// The kinds that are told apart.
    enum Kind: Equatable {
        /// There is none of that name.
        case missing
        /// The system refused.
        case denied
        /// Others than its owner could read or change it, or its owner is not trusted.
        case exposed
        /// Larger than what may be read.
        case tooLarge
        /// Anything else.
        case failed
    }

    /// The kind.
    var kind: Kind
    /// What happened, where, and what to do.
    var reason: String

    init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    /// The fault that `errno` tells of after `action` on `path` ("read", "create", …).
    static func system(_ action: String, _ path: String, _ code: Int32) -> FileFault {
        switch code {
        case ENOENT, ENOTDIR:
            return FileFault(.missing, "cannot \(action) \(path): there is none; check the path")
        case EACCES, EPERM, EROFS:
            return FileFault(
                .denied, "cannot \(action) \(path): \(message(code)); check who owns it and its directory")
        default:
            return FileFault(.failed, "cannot \(action) \(path): \(message(code))")
        }
    }

    /// What the C library says about an error number. (glibc's `strerror` is safe among threads since 2.32.)
    private static func message(_ code: Int32) -> String {
        return unsafe String(cString: strerror(code))
    }
}
