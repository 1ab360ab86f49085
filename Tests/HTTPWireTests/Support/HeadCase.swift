// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// A raw request head, and the parser's expected result.
struct HeadCase: Sendable, CustomTestStringConvertible {
    /// Each character up to U+00FF stands for one byte.
    let raw: String
    /// Rule that the head breaks, or nil if the whole head is accepted.
    let refusal: WireErrorCode?

    var bytes: [UInt8] { latin1(raw) }
    var testDescription: String { String(reflecting: raw.prefix(120)) }

    /// Expected result of the parser for all bytes.
    var outcome: RequestHeadParser.Outcome {
        refusal.map { .refused(WireError($0)) } ?? .complete(length: bytes.count)
    }

    static func taken(_ raw: String) -> HeadCase { HeadCase(raw: raw, refusal: nil) }
    static func refused(_ code: WireErrorCode, _ raw: String) -> HeadCase { HeadCase(raw: raw, refusal: code) }

    /// Returns a GET with these field lines after its Host.
    static func fields(_ lines: String, _ refusal: WireErrorCode? = nil) -> HeadCase {
        HeadCase(raw: "GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n\r\n", refusal: refusal)
    }

    /// Returns a request with this request line and a Host.
    static func line(_ line: String, _ refusal: WireErrorCode? = nil) -> HeadCase {
        HeadCase(raw: "\(line)\r\nHost: a\r\n\r\n", refusal: refusal)
    }
}

/// Returns the bytes of a text whose characters are all below U+0100.
func latin1(_ text: String) -> [UInt8] {
    text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
}

/// Returns the bytes in a range as text, or nil without a range.
func text(_ range: ByteRange?, in bytes: [UInt8]) -> String? {
    range.map { bytes.span.text($0) }
}

/// Returns the result of a new parser for all of `bytes` at once.
func parse(_ bytes: [UInt8], limits: HeadLimits = HeadLimits()) -> RequestHeadParser.Outcome {
    var parser = RequestHeadParser(limits: limits)
    return parser.parse(bytes.span)
}

/// Returns the result of a new parser for bytes that arrive one at a time, and the number it used.
func parseByteByByte(
    _ bytes: [UInt8], limits: HeadLimits = HeadLimits()
) -> (outcome: RequestHeadParser.Outcome, head: RequestHead, used: Int) {
    var parser = RequestHeadParser(limits: limits)
    for count in 0...bytes.count {
        let outcome = parser.parse(bytes.span.extracting(first: count))
        if outcome != .incomplete { return (outcome, parser.head, count) }
    }
    return (.incomplete, parser.head, bytes.count)
}

/// Returns the head of a request that must be accepted as a whole.
func head(_ raw: String, sourceLocation: SourceLocation = #_sourceLocation) -> RequestHead {
    var parser = RequestHeadParser()
    let outcome = parser.parse(latin1(raw).span)
    #expect(outcome == .complete(length: latin1(raw).count), sourceLocation: sourceLocation)
    return parser.head
}

/// Returns the head of a GET with these field lines after its Host.
func head(fields lines: String, version: String = "1.1", sourceLocation: SourceLocation = #_sourceLocation)
    -> RequestHead
{
    head("GET / HTTP/\(version)\r\nHost: a\r\n\(lines)\r\n\r\n", sourceLocation: sourceLocation)
}

/// All cases of all topics, for properties that hold for every head.
enum HeadCases {
    static let all =
        requestLines + targets + hosts + fieldLines + lengths + encodings + connections

    static let taken = all.filter { $0.refusal == nil }
}
