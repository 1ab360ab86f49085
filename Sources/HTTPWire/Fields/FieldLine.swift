// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A field line as ranges into the bytes that were parsed.
public struct FieldLine: Equatable, Sendable {
    /// The name, as it was spelled.
    public let name: ByteRange
    /// The value without the white space around it (RFC 9112 section 5); may be empty.
    public let value: ByteRange
    /// Which field it is.
    public let kind: FieldName
    /// True if `Connection` names it, so that it goes no further (RFC 9110 section 7.6.1).
    public internal(set) var isNominated = false

    /// Returns whether the line stands in `bytes` as it is written: a blank between colon and value, or nothing where there is none.
    public func isPlain(in bytes: Span<UInt8>) -> Bool {
        value.isEmpty || value.start == name.end + 2 && value.end <= bytes.count && bytes[name.end + 1] == .space
    }

    /// True if the line must not be forwarded: it concerns the connection by what it is, or because `Connection` says so.
    public var isHopByHop: Bool { isNominated || kind.isHopByHop }
}

extension FieldLine {
    /// Takes one line apart that spans `start..<end`, without its CRLF.
    ///
    /// Strict where leniency makes two readers disagree: no white space before the colon (RFC 9112 section 5.1), a name
    /// that is a token, a value without controls (RFC 9110 section 5.5). The caller has dealt with leading white space.
    init(_ bytes: Span<UInt8>, from start: Int, to end: Int) throws(WireErrorCode) {
        let colon = bytes.endOfToken(from: start, to: end)
        guard colon < end else { throw .fieldColonMissing }
        guard bytes[colon] == UInt8(ascii: ":") else {
            throw bytes[colon].isBlank ? FieldLine.blankInName(bytes, at: colon, to: end) : .fieldNameInvalid
        }
        guard colon > start else { throw .fieldNameInvalid }

        var first = colon + 1
        while first < end, bytes[first].isBlank { first += 1 }
        var last = end
        while last > first, bytes[last - 1].isBlank { last -= 1 }
        guard bytes.isFieldValue(from: first, to: last) else { throw .fieldValueInvalid }
        name = ByteRange(start: start, end: colon)
        value = ByteRange(start: first, end: last)
        kind = FieldName(bytes, name)
    }

    /// Tells white space before the colon from white space within the name.
    private static func blankInName(_ bytes: Span<UInt8>, at position: Int, to end: Int) -> WireErrorCode {
        var index = position
        while index < end, bytes[index].isBlank { index += 1 }
        return index < end && bytes[index] == UInt8(ascii: ":") ? .fieldSpaceBeforeColon : .fieldNameInvalid
    }
}
