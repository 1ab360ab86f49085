// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Why request bodies are not kept on disk at the moment. Requests go on; only a challenge in their middle is then
/// answered by `body-not-replayable`.
package enum ReplayTrouble: Sendable, Equatable {
    /// All bodies together have used up their budget, of that many bytes.
    case budget(Int)
    /// No file can be made; the system's error number.
    case opening(Int32)
    /// A file cannot be read back; the system's error number.
    case reading(Int32)
    /// A file cannot be written, most often because the file system is full; the system's error number.
    case writing(Int32)

    /// What happened and what to do, for the log.
    package var reason: String {
        switch self {
        case .budget(let limit):
            """
            the \(limit) bytes are used up that all request bodies on disk may take together; `limits.replay` sets \
            them
            """
        case .opening(let number):
            """
            no file can be made in the runtime directory: \(Self.text(number)); $RUNTIME_DIRECTORY says where that is, \
            `replay.disk: 0` of the upstreams does without
            """
        case .reading(let number):
            "a file in the runtime directory cannot be read back: \(Self.text(number))"
        case .writing(let number):
            """
            a file in the runtime directory cannot be written: \(Self.text(number)); make room there, or lower \
            `limits.replay`
            """
        }
    }

    private static func text(_ number: Int32) -> String {
        unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
    }
}
