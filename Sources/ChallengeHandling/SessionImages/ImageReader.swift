// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Reader of the format that `ImageWriter` writes; missing or invalid bytes are an error.
struct ImageReader {
    /// Maximum length of a text; addresses, names and scopes are shorter.
    static let longestText = 64 * 1024
    /// Maximum length of a secret: more than a request's field can carry.
    static let longestSecret = 256 * 1024

    private let image: Secret
    private(set) var position = 0

    init(_ image: Secret) { self.image = image }

    var isAtEnd: Bool { position == image.count }

    mutating func byte() throws(SessionImageError) -> UInt8 { UInt8(truncatingIfNeeded: try number(1)) }

    mutating func uint16() throws(SessionImageError) -> UInt16 { UInt16(truncatingIfNeeded: try number(2)) }

    mutating func uint32() throws(SessionImageError) -> UInt32 { UInt32(truncatingIfNeeded: try number(4)) }

    mutating func int64() throws(SessionImageError) -> Int64 { Int64(bitPattern: try number(8)) }

    /// Reads 0 or 1.
    mutating func flag() throws(SessionImageError) -> Bool {
        switch try byte() {
        case 0: false
        case 1: true
        default: throw SessionImageError(.malformed, at: position - 1)
        }
    }

    mutating func optionalInt64() throws(SessionImageError) -> Int64? { try flag() ? try int64() : nil }

    /// Reads a count of at most `limit`.
    mutating func count(atMost limit: Int) throws(SessionImageError) -> Int {
        let count = Int(try uint16())
        guard count <= limit else { throw SessionImageError(.malformed, at: position - 2) }
        return count
    }

    mutating func text() throws(SessionImageError) -> String {
        let start = position
        guard let text = String(validating: try bytes(atMost: Self.longestText), as: UTF8.self) else {
            throw SessionImageError(.malformed, at: start)
        }
        return text
    }

    mutating func bytes(atMost limit: Int) throws(SessionImageError) -> [UInt8] {
        let range = try range(atMost: limit)
        return image.withBytes { bytes in range.map { bytes[$0] } }
    }

    /// Reads bytes of any kind.
    mutating func secret(atMost limit: Int) throws(SessionImageError) -> Secret {
        let range = try range(atMost: limit)
        var copy = SecretBuilder(capacity: range.count)
        image.withBytes { bytes in
            for index in range { copy.append(bytes[index]) }
        }
        return copy.finish()
    }

    /// Reads a secret without control characters, as a field may carry it (RFC 9110 §5.5).
    mutating func fieldValue() throws(SessionImageError) -> Secret {
        let start = position
        let range = try range(atMost: Self.longestSecret)
        var copy = SecretBuilder(capacity: range.count)
        let isClean = image.withBytes { bytes in
            for index in range {
                let byte = bytes[index]
                guard (byte >= 0x20 && byte != 0x7F) || byte == 0x09 else { return false }
                copy.append(byte)
            }
            return true
        }
        guard isClean else { throw SessionImageError(.malformed, at: start) }
        return copy.finish()
    }

    mutating func origin() throws(SessionImageError) -> Origin {
        let start = position
        let isSecure = try flag()
        let host = try text()
        let port = try uint16()
        let origin = Origin(scheme: isSecure ? .https : .http, host: host, port: port)
        guard !host.isEmpty, origin.host == host else { throw SessionImageError(.malformed, at: start) }
        return origin
    }

    /// Checks that the next bytes are `expected`.
    mutating func expect(_ expected: [UInt8]) throws(SessionImageError) {
        guard expected.count <= image.count - position else { throw SessionImageError(.foreign, at: position) }
        let start = position
        let isSame = image.withBytes { bytes in expected.indices.allSatisfy { bytes[start + $0] == expected[$0] } }
        guard isSame else { throw SessionImageError(.foreign, at: position) }
        position += expected.count
    }

    private mutating func range(atMost limit: Int) throws(SessionImageError) -> Range<Int> {
        let start = position
        let length = Int(try uint32())
        guard length <= limit else { throw SessionImageError(.malformed, at: start) }
        guard length <= image.count - position else { throw SessionImageError(.cutOff, at: position) }
        defer { position += length }
        return position..<position + length
    }

    private mutating func number(_ count: Int) throws(SessionImageError) -> UInt64 {
        guard count <= image.count - position else { throw SessionImageError(.cutOff, at: position) }
        let start = position
        position += count
        return image.withBytes { bytes in
            (start..<start + count).reduce(0) { number, index in number << 8 | UInt64(bytes[index]) }
        }
    }
}

/// Reason why bytes are not an image of sessions.
package struct SessionImageError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Kind of the error.
    package enum Kind: Sendable, Equatable {
        /// The image ends too early.
        case cutOff
        /// The image has another version, or another format.
        case foreign
        /// A value is invalid.
        case malformed
    }

    /// Kind of the error.
    package let kind: Kind
    /// Offset of the error in bytes.
    package let offset: Int

    init(_ kind: Kind, at offset: Int) {
        self.kind = kind
        self.offset = offset
    }

    /// Description of the error.
    package var description: String {
        switch kind {
        case .cutOff: "it ends too early, after \(offset) bytes"
        case .foreign: "it has another version"
        case .malformed: "the value at byte \(offset) is invalid in every version"
        }
    }
}

/// Writer of a session image: big-endian numbers, length-prefixed texts and secrets. Leaves no copy of a secret.
struct ImageWriter: ~Copyable {
    private var bytes = SecretBuilder(capacity: 1024)

    mutating func append(byte: UInt8) { bytes.append(byte) }

    mutating func append(_ number: UInt16) { append(UInt64(number), bytes: 2) }

    mutating func append(_ number: UInt32) { append(UInt64(number), bytes: 4) }

    mutating func append(_ number: Int64) { append(UInt64(bitPattern: number), bytes: 8) }

    mutating func append(_ isSet: Bool) { append(byte: isSet ? 1 : 0) }

    /// Appends a flag, and the number if there is one.
    mutating func append(_ number: Int64?) {
        append(number != nil)
        if let number { append(number) }
    }

    mutating func append(_ text: String) {
        append(UInt32(clamping: text.utf8.count))
        bytes.append(text)
    }

    mutating func append(_ digest: [UInt8]) {
        append(UInt32(clamping: digest.count))
        bytes.append(digest)
    }

    mutating func append(_ secret: Secret) {
        append(UInt32(clamping: secret.count))
        bytes.append(secret)
    }

    mutating func append(_ origin: Origin) {
        append(byte: origin.scheme == .https ? 1 : 0)
        append(origin.host)
        append(origin.port)
    }

    /// Appends bytes without their length.
    mutating func append(raw: some Collection<UInt8>) { bytes.append(raw) }

    consuming func finish() -> Secret { bytes.finish() }

    private mutating func append(_ number: UInt64, bytes count: Int) {
        for index in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(index)))) }
    }
}
