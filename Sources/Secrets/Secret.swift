// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A value that must never print: a password, a token, a key.
///
/// The bytes live in memory of their own, out of core dumps and, where the limit on locked memory allows, out of swap; it is
/// overwritten when the last reference goes. Every description of a
/// secret, also inside another value, a log line or a dump, reads `<redacted>`. Comparison takes the same time
/// whatever the bytes are, as long as the lengths agree.
@safe
public final class Secret: Sendable {
    // Immutable after init, hence safe to share.
    private let storage: UnsafeBytes

    /// Copies `bytes`. The caller's copy is the caller's to forget.
    public init(_ bytes: some Collection<UInt8>) {
        storage = UnsafeBytes(bytes)
    }

    /// The UTF-8 bytes of `text`.
    public convenience init(_ text: String) {
        self.init(text.utf8)
    }

    /// Copies `bytes` and overwrites them where they are, so that the secret is the only copy left (as long as no other
    /// reference to the array's memory exists).
    public convenience init(taking bytes: inout [UInt8]) {
        self.init(bytes)
        unsafe bytes.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe explicit_bzero(start, bytes.count)
        }
        bytes = []
    }

    deinit {
        unsafe SecretMemory.release(storage.start, storage.count)
    }

    /// The number of bytes.
    public var count: Int { storage.count }

    /// Whether there are no bytes.
    public var isEmpty: Bool { count == 0 }

    /// Lends the bytes to `body`; they must not be kept beyond it.
    public func withBytes<Result, Failure>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = unsafe Span<UInt8>(
            _unsafeElements: UnsafeBufferPointer(start: storage.start, count: storage.count))
        return try body(bytes)
    }

    /// A copy of the bytes, for an API that takes nothing else. Every use is a place to audit.
    public func revealBytes() -> [UInt8] {
        withBytes { bytes in
            var copy: [UInt8] = []
            copy.reserveCapacity(bytes.count)
            for index in bytes.indices { copy.append(bytes[index]) }
            return copy
        }
    }

    /// The bytes as text (invalid UTF-8 becomes U+FFFD). Every use is a place to audit.
    public func revealText() -> String {
        String(decoding: revealBytes(), as: UTF8.self)
    }
}

extension Secret: Equatable {
    /// Compares in a time that depends on the lengths only.
    public static func == (left: Secret, right: Secret) -> Bool {
        guard left.count == right.count else { return false }
        return left.withBytes { left in
            right.withBytes { right in
                var difference: UInt8 = 0
                for index in left.indices { difference |= left[index] ^ right[index] }
                return difference == 0
            }
        }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `<redacted>`.
    public var description: String { "<redacted>" }
    /// Always `<redacted>`.
    public var debugDescription: String { "<redacted>" }
    /// A mirror without children, so that `dump` shows nothing either.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The owned memory of a secret.
@safe
private struct UnsafeBytes: @unchecked Sendable {
    let start: UnsafeMutablePointer<UInt8>
    let count: Int

    init(_ bytes: some Collection<UInt8>) {
        count = bytes.count
        unsafe start = SecretMemory.allocate(count)
        var index = 0
        for byte in bytes {
            unsafe start[index] = byte
            index += 1
        }
    }
}
