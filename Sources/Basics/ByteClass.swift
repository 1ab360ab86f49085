// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A set of ASCII bytes as two words, so that the test of a byte reads no memory.
package struct ByteClass: Sendable {
    @usableFromInline let low: UInt64
    @usableFromInline let high: UInt64

    @inlinable
    init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// Returns true if the set contains `byte`.
    @inlinable
    @inline(__always)
    package func contains(_ byte: UInt8) -> Bool {
        let word = byte < 64 ? low : byte < 128 ? high : 0
        return (word &>> UInt64(byte)) & 1 == 1
    }

    /// `tchar` of RFC 9110 §5.6.2: field names, methods, tokens.
    @inlinable package static var token: ByteClass {
        ByteClass(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE)
    }

    /// Bytes of a path besides percent signs: `pchar` and the slash (RFC 3986 §3.3).
    @inlinable package static var path: ByteClass { ByteClass(low: 0x2FFF_FFD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFF) }

    /// Bytes of a caller's path besides percent signs.
    ///
    /// Bytes of a path, and the characters that RFC 3986 requires to be encoded but that browsers, curl and many
    /// libraries leave unencoded: brackets, braces, bar, circumflex and backtick. Not the backslash, which some read as
    /// a slash.
    @inlinable package static var callersPath: ByteClass {
        ByteClass(low: 0x2FFF_FFD2_0000_0000, high: 0x7FFF_FFFF_EFFF_FFFF)
    }

    /// ASCII bytes of a caller's query: those of a path, question and percent marks, quotation marks, and angle
    /// brackets. It has bytes from 0x80 as well.
    @inlinable package static var callersQuery: ByteClass {
        ByteClass(low: 0xFFFF_FFF6_0000_0000, high: 0x7FFF_FFFF_EFFF_FFFF)
    }

    /// Bytes that a request target may have on the wire: visible ASCII without `#`, which begins a fragment (RFC 9112
    /// §3.2, RFC 3986 §3.5).
    ///
    /// No space, CR, LF or other control, which could end the target, the line or the request.
    @inlinable package static var target: ByteClass {
        ByteClass(low: 0xFFFF_FFF6_0000_0000, high: 0x7FFF_FFFF_FFFF_FFFF)
    }

    /// `unreserved` of RFC 3986 §2.3.
    @inlinable package static var unreserved: ByteClass {
        ByteClass(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    }

    /// `qdtext` of RFC 9110 §5.6.4, without obs-text.
    @inlinable package static var quotedText: ByteClass {
        ByteClass(low: 0xFFFF_FFFB_0000_0200, high: 0x7FFF_FFFF_EFFF_FFFF)
    }
}

extension UInt8 {
    /// HTAB.
    @inlinable package static var tab: UInt8 { 0x09 }
    /// LF.
    @inlinable package static var lineFeed: UInt8 { 0x0A }
    /// CR.
    @inlinable package static var carriageReturn: UInt8 { 0x0D }
    /// SP.
    @inlinable package static var space: UInt8 { 0x20 }

    /// The byte with an upper-case ASCII letter made lower-case.
    @inlinable
    @inline(__always)
    package var lowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    /// True for SP or HTAB, the white space of RFC 9110 §5.6.3.
    @inlinable
    @inline(__always)
    package var isBlank: Bool { self == .space || self == .tab }

    /// DIGIT of RFC 5234, appendix B.1.
    @inlinable
    @inline(__always)
    package var isDigit: Bool { self &- 0x30 < 10 }

    /// ALPHA of RFC 5234, appendix B.1.
    @inlinable
    @inline(__always)
    package var isLetter: Bool { (self | 0x20) &- 0x61 < 26 }

    /// ALPHA or DIGIT of RFC 5234, appendix B.1.
    @inlinable
    @inline(__always)
    package var isAlphanumeric: Bool { isDigit || isLetter }

    /// True for ASCII whitespace (WHATWG Infra §4.6): SP, TAB, LF, FF and CR.
    @inlinable
    @inline(__always)
    package var isASCIIWhitespace: Bool { self == .space || self &- 0x09 < 5 && self != 0x0B }

    /// True for bytes of a field value: VCHAR, obs-text, SP or HTAB (RFC 9110 §5.5), but not CR, LF, NUL and the other
    /// controls.
    @inlinable
    @inline(__always)
    package var isFieldValue: Bool { (self >= 0x20 && self != 0x7F) || self == .tab }

    /// The value of a hexadecimal digit; `nil` for any other byte.
    @inlinable
    @inline(__always)
    package var hexadecimalValue: UInt8? {
        if isDigit { return self &- 0x30 }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }
}

extension BidirectionalCollection<UInt8> {
    /// Returns the bytes without those at both ends that `isTrimmed`.
    package func trimmed(_ isTrimmed: (UInt8) -> Bool) -> SubSequence {
        var (start, end) = (startIndex, endIndex)
        while start != end, isTrimmed(self[start]) { formIndex(after: &start) }
        while start != end {
            let last = index(before: end)
            guard isTrimmed(self[last]) else { break }
            end = last
        }
        return self[start..<end]
    }
}

extension Sequence<UInt8> {
    /// True if the bytes are a `token` (RFC 9110 §5.6.2): one `tchar` or more.
    package var isToken: Bool {
        var isEmpty = true
        for byte in self {
            guard ByteClass.token.contains(byte) else { return false }
            isEmpty = false
        }
        return !isEmpty
    }
}

extension Span<UInt8> {
    /// True if the bytes can be sent as a request target: a path with an optional query, or `*` (RFC 9112 §3.2).
    ///
    /// A query can have bytes from 0x80, as callers send them.
    package var isRequestTarget: Bool {
        guard count > 0, self[0] == UInt8(ascii: "/") || count == 1 && self[0] == UInt8(ascii: "*") else {
            return false
        }
        var isQuery = false
        for index in indices {
            let byte = self[index]
            guard ByteClass.target.contains(byte) || isQuery && byte >= 0x80 else { return false }
            if byte == UInt8(ascii: "?") { isQuery = true }
        }
        return true
    }

    /// Copy of the bytes.
    package var array: [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(count)
        for index in indices { copy.append(self[index]) }
        return copy
    }

    /// Returns true if the bytes in lower case are `text`, which has no capitals.
    package func isEqual(toLowercase text: [UInt8]) -> Bool {
        guard count == text.count else { return false }
        for index in indices where self[index].lowercased != text[index] { return false }
        return true
    }
}
