// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// An error number of the system.
package struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    /// `errno`.
    package let code: Int32

    /// An error of that number.
    package init(code: Int32) { self.code = code }

    /// Error that the last failed call of this thread left in `errno`.
    package static var last: SystemError { SystemError(code: errno) }

    /// True if the cause may pass by itself, so that the same call may succeed later: a shortage, an interruption, a
    /// failing disk.
    package var mayPass: Bool {
        switch code {
        case EAGAIN, EINTR, EIO, EMFILE, ENFILE, ENOBUFS, ENOLCK, ENOMEM, ENOSPC: true
        default: false
        }
    }

    /// The C library's words for the error.
    package var description: String { Self.message(code) }

    /// Message of the C library for an error number, with the number.
    package static func numberedMessage(_ code: Int32) -> String { "\(message(code)) (errno \(code))" }

    /// Returns the C library's message for an error number. (glibc's `strerror` is thread-safe since 2.32.)
    package static func message(_ code: Int32) -> String {
        guard let text = unsafe strerror(code) else { return "error \(code)" }
        return unsafe String(cString: text)
    }
}

/// Repeats `call` while it is interrupted; a negative result is an error.
@discardableResult
package func systemCall<Result: FixedWidthInteger>(_ call: () -> Result) throws(SystemError) -> Result {
    while true {
        let result = call()
        if result >= 0 { return result }
        let code = errno
        if code != EINTR { throw SystemError(code: code) }
    }
}

/// Overwrites bytes that were secret.
package func wipe(_ bytes: inout [UInt8]) {
    unsafe bytes.withUnsafeMutableBytes { buffer in
        guard let start = buffer.baseAddress else { return }
        unsafe explicit_bzero(start, buffer.count)
    }
}
