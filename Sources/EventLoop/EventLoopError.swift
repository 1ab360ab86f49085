// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The system refused something that a loop is made of.
public struct EventLoopError: Error, Equatable, CustomStringConvertible {
    /// The call that failed, for example `epoll_create1`.
    public let call: String
    /// Its error number.
    public let errno: Int32

    /// What failed, and with what error.
    public var description: String {
        let text = unsafe strerror(errno).map { unsafe String(cString: $0) } ?? "error \(errno)"
        return "\(call): \(text)"
    }

    /// The result of a call that returns a negated error number, or that error.
    static func check(_ result: Int32, _ call: String) throws(EventLoopError) -> Int32 {
        guard result >= 0 else { throw EventLoopError(call: call, errno: -result) }
        return result
    }
}
