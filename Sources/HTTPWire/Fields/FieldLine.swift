// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Field line, as ranges of the parsed bytes.
public struct FieldLine: Equatable, Sendable {
    /// Name, as it was spelled.
    public let name: ByteRange
    /// Value without surrounding white space (RFC 9112 §5); may be empty.
    public let value: ByteRange
    /// Known field of that name.
    public let kind: FieldName
    /// True if `Connection` names the field, which is then not forwarded (RFC 9110 §7.6.1).
    public internal(set) var isNominated = false

    /// Returns true if `bytes` have one space between colon and value, or no value.
    public func isPlain(in bytes: Span<UInt8>) -> Bool {
        value.isEmpty || value.start == name.end + 2 && value.end <= bytes.count && bytes[name.end + 1] == .space
    }

    /// True if the line must not be forwarded, by its kind or because `Connection` names it.
    public var isHopByHop: Bool { isNominated || kind.isHopByHop }
}

extension FieldLine {
    /// Parses the line in `start..<end`, without its CRLF.
    ///
    /// Strict where leniency would let two readers disagree: no white space before the colon (RFC 9112 §5.1), a name
    /// that is a token, a value without control characters (RFC 9110 §5.5). The caller has handled leading white space.
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

    /// Distinguishes white space before the colon from white space within the name.
    private static func blankInName(_ bytes: Span<UInt8>, at position: Int, to end: Int) -> WireErrorCode {
        var index = position
        while index < end, bytes[index].isBlank { index += 1 }
        return index < end && bytes[index] == UInt8(ascii: ":") ? .fieldSpaceBeforeColon : .fieldNameInvalid
    }
}

/// Consecutive lines of a parsed head, to be written with one copy.
///
/// A parser has checked each line, so they are not checked again. A line with white space after its value ends the run,
/// because trailing white space is not written.
public struct FieldRun: Sendable {
    private var start = 0
    private var end = 0

    /// Creates an empty run.
    public init() {}

    /// Creates a run that begins with the status line of `head`, if it can be forwarded unchanged.
    ///
    /// Only an HTTP/1.1 status line with a reason phrase can.
    public init(statusLineOf head: ResponseHead) {
        if head.majorVersion == 1, head.minorVersion == 1, !head.reason.isEmpty { end = head.reason.end }
    }

    /// True if the run has no line.
    public var isEmpty: Bool { start == end }

    /// Number of bytes that `append` writes.
    var count: Int { isEmpty ? 0 : end - start + 2 }

    /// Adds `line`, and returns false if it does not follow the last line after one CRLF.
    ///
    /// An empty run accepts any line.
    public mutating func add(_ line: FieldLine) -> Bool {
        if !isEmpty, line.name.start != end + 2 { return false }
        if isEmpty { start = line.name.start }
        end = line.value.isEmpty ? line.name.end + 1 : line.value.end
        return true
    }

    /// Returns the run and starts another, with `line` if there is one.
    public mutating func taken(by line: FieldLine? = nil) -> FieldRun {
        let run = self
        self = FieldRun()
        if let line { _ = add(line) }
        return run
    }

    /// Appends the lines, each with its CRLF; `head` holds the bytes of their ranges.
    @inline(__always)
    public func append(of head: Span<UInt8>, to queue: inout ByteQueue) {
        guard !isEmpty, end <= head.count else { return }
        queue.append(head.extracting(start..<end))
        queue.append("\r\n")
    }
}
