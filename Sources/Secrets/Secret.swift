// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Value that must never be printed: a password, a token, a key.
///
/// The bytes are in dedicated memory, excluded from core dumps and, if the limit on locked memory allows, from swap.
/// The memory is overwritten when the last reference is released. Every description of a secret, also inside another
/// value, a log line or a dump, is `<redacted>`. Comparison takes constant time for equal lengths.
@safe
public final class Secret: Sendable {
    // Immutable after init, hence safe to share.
    private let storage: UnsafeBytes

    /// Copies `bytes`; erasing the caller's copy is up to the caller.
    public init(_ bytes: some Collection<UInt8>) {
        storage = UnsafeBytes(bytes)
    }

    /// Copies the UTF-8 bytes of `text`.
    public convenience init(_ text: String) {
        self.init(text.utf8)
    }

    /// Copies `bytes` and overwrites the array, so that the secret is the only copy.
    ///
    /// This requires that no other reference to the array's memory exists.
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

    /// Number of bytes.
    public var count: Int { storage.count }

    /// True if there are no bytes.
    public var isEmpty: Bool { count == 0 }

    /// Passes the bytes to `body`; the span must not escape.
    public func withBytes<Result, Failure>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let bytes = unsafe Span<UInt8>(
            _unsafeElements: UnsafeBufferPointer(start: storage.start, count: storage.count))
        return try body(bytes)
    }

    /// Returns a copy of the bytes, for an API that accepts nothing else; audit every use.
    public func revealBytes() -> [UInt8] {
        withBytes { bytes in
            var copy: [UInt8] = []
            copy.reserveCapacity(bytes.count)
            for index in bytes.indices { copy.append(bytes[index]) }
            return copy
        }
    }

    /// Returns the bytes as text, with U+FFFD for invalid UTF-8; audit every use.
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
    /// Mirror without children, so that `dump` shows nothing either.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Memory of a secret.
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

extension Secret {
    /// Alphabets of base64.
    public enum Base64Alphabet: Sendable {
        /// With `+` and `/`, padded by `=` (RFC 4648 §4), as in `Authorization: Basic`.
        case standard
        /// With `-` and `_`, without padding (RFC 4648 §5, RFC 7515 §2), as in tokens.
        case url

        fileprivate var digits: StaticString {
            switch self {
            case .standard: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
            case .url: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
            }
        }
    }

    /// Returns the secret in base64, itself a secret; no copy of either remains.
    public func base64(_ alphabet: Base64Alphabet = .standard) -> Secret {
        var digits: [UInt8] = []
        alphabet.digits.withUTF8Buffer { unsafe digits.append(contentsOf: $0) }
        var text = SecretBuilder(capacity: (count / 3 + 1) * 4)
        withBytes { bytes in
            var index = 0
            while index < bytes.count {
                let taken = min(bytes.count - index, 3)
                var group: UInt32 = 0
                for offset in 0..<3 {
                    group = group << 8 | (offset < taken ? UInt32(bytes[index + offset]) : 0)
                }
                for position in 0...taken {
                    text.append(digits[Int(group >> (18 - 6 * UInt32(position)) & 63)])
                }
                if alphabet == .standard {
                    for _ in taken..<3 { text.append(UInt8(ascii: "=")) }
                }
                index += taken
            }
        }
        return text.finish()
    }
}
