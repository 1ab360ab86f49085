// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Reads what `ImageWriter` writes, from its start. Whatever is not there, or is not what it should be, is an error.
struct ImageReader {
    /// The longest text; addresses, names and scopes are shorter.
    static let longestText = 64 * 1024
    /// The longest secret: what a request's field may carry, and more.
    static let longestSecret = 256 * 1024

    private let image: Secret
    private(set) var position = 0

    init(_ image: Secret) { self.image = image }

    var isAtEnd: Bool { position == image.count }

    mutating func byte() throws(SessionImageError) -> UInt8 { UInt8(truncatingIfNeeded: try number(1)) }

    mutating func uint16() throws(SessionImageError) -> UInt16 { UInt16(truncatingIfNeeded: try number(2)) }

    mutating func uint32() throws(SessionImageError) -> UInt32 { UInt32(truncatingIfNeeded: try number(4)) }

    mutating func int64() throws(SessionImageError) -> Int64 { Int64(bitPattern: try number(8)) }

    /// 0 or 1, and no other.
    mutating func flag() throws(SessionImageError) -> Bool {
        switch try byte() {
        case 0: false
        case 1: true
        default: throw SessionImageError(.malformed, at: position - 1)
        }
    }

    mutating func optionalInt64() throws(SessionImageError) -> Int64? { try flag() ? try int64() : nil }

    /// How many there are, at most `limit`.
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

    /// Bytes of any kind.
    mutating func secret(atMost limit: Int) throws(SessionImageError) -> Secret {
        let range = try range(atMost: limit)
        var copy = SecretBuilder(capacity: range.count)
        image.withBytes { bytes in
            for index in range { copy.append(bytes[index]) }
        }
        return copy.finish()
    }

    /// A secret without line ends and other control signs, as a field may carry it (RFC 9110 §5.5).
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

    /// That these bytes come next.
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

/// Why bytes are no image of sessions.
package struct SessionImageError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds.
    package enum Kind: Sendable, Equatable {
        /// It ends too early.
        case cutOff
        /// It is of another version, or something else altogether.
        case foreign
        /// A value that none of ours would be.
        case malformed
    }

    /// The kind.
    package let kind: Kind
    /// The number of bytes before the place.
    package let offset: Int

    init(_ kind: Kind, at offset: Int) {
        self.kind = kind
        self.offset = offset
    }

    /// What is wrong.
    package var description: String {
        switch kind {
        case .cutOff: "it is cut off after \(offset) bytes"
        case .foreign: "it is of another version"
        case .malformed: "there is a value at byte \(offset) that no version writes"
        }
    }
}
