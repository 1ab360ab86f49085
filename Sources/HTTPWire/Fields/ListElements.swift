// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Walks over a comma-separated list of tokens, `#token` (RFC 9110 section 5.6.1).
struct ListElements {
    private var position: Int
    private let end: Int

    init(_ value: ByteRange) {
        position = value.start
        end = value.end
    }

    /// The next token, or nil at the end; `error` where something other than a token stands.
    mutating func next(
        in bytes: Span<UInt8>, orThrow error: WireErrorCode
    ) throws(WireErrorCode) -> ByteRange? {
        // Empty elements are to be passed over (section 5.6.1.2).
        while position < end, bytes[position].isBlank || bytes[position] == UInt8(ascii: ",") { position += 1 }
        guard position < end else { return nil }
        let start = position
        position = bytes.endOfToken(from: position, to: end)
        let element = ByteRange(start: start, end: position)
        while position < end, bytes[position].isBlank { position += 1 }
        guard !element.isEmpty, position == end || bytes[position] == UInt8(ascii: ",") else { throw error }
        return element
    }
}
