// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Walks over the list of an `Upgrade` field: `#( token [ "/" token ] )` (RFC 9110 section 7.8).
struct ProtocolElements {
    private var position: Int
    private let end: Int

    init(_ value: ByteRange) {
        position = value.start
        end = value.end
    }

    /// The next protocol with its version, or nil at the end; throws where something else stands.
    mutating func next(in bytes: Span<UInt8>) throws(WireErrorCode) -> ByteRange? {
        // Empty elements are to be passed over (section 5.6.1.2).
        while position < end, bytes[position].isBlank || bytes[position] == UInt8(ascii: ",") { position += 1 }
        guard position < end else { return nil }
        let start = position
        position = bytes.endOfToken(from: start, to: end)
        guard position > start else { throw .switchInvalid }
        if position < end, bytes[position] == UInt8(ascii: "/") {
            let version = position + 1
            position = bytes.endOfToken(from: version, to: end)
            guard position > version else { throw .switchInvalid }
        }
        let element = ByteRange(start: start, end: position)
        while position < end, bytes[position].isBlank { position += 1 }
        guard position == end || bytes[position] == UInt8(ascii: ",") else { throw .switchInvalid }
        return element
    }
}
