// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// A raw request head and what the parser has to make of it.
struct HeadCase: Sendable, CustomTestStringConvertible {
    /// Each character up to U+00FF stands for one byte.
    let raw: String
    /// The rule that is broken, or nil for a head that is taken whole.
    let refusal: WireErrorCode?

    var bytes: [UInt8] { latin1(raw) }
    var testDescription: String { String(reflecting: raw.prefix(120)) }

    /// What the parser must say to all of the bytes.
    var outcome: RequestHeadParser.Outcome {
        refusal.map { .refused(WireError($0)) } ?? .complete(length: bytes.count)
    }

    static func taken(_ raw: String) -> HeadCase { HeadCase(raw: raw, refusal: nil) }
    static func refused(_ code: WireErrorCode, _ raw: String) -> HeadCase { HeadCase(raw: raw, refusal: code) }

    /// A GET with these field lines behind its Host.
    static func fields(_ lines: String, _ refusal: WireErrorCode? = nil) -> HeadCase {
        HeadCase(raw: "GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n\r\n", refusal: refusal)
    }

    /// A GET with this request line and a Host.
    static func line(_ line: String, _ refusal: WireErrorCode? = nil) -> HeadCase {
        HeadCase(raw: "\(line)\r\nHost: a\r\n\r\n", refusal: refusal)
    }
}

/// The bytes of a text whose characters are all below U+0100.
func latin1(_ text: String) -> [UInt8] {
    text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
}

/// The bytes in a range as text; nil where there is no range.
func text(_ range: ByteRange?, in bytes: [UInt8]) -> String? {
    range.map { bytes.span.text($0) }
}

/// What a fresh parser says to all of `bytes` at once.
func parse(_ bytes: [UInt8], limits: HeadLimits = HeadLimits()) -> RequestHeadParser.Outcome {
    var parser = RequestHeadParser(limits: limits)
    return parser.parse(bytes.span)
}

/// What a fresh parser says to the bytes coming one at a time, and how many it wanted.
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

/// The head of a request that must be taken whole.
func head(_ raw: String, sourceLocation: SourceLocation = #_sourceLocation) -> RequestHead {
    var parser = RequestHeadParser()
    let outcome = parser.parse(latin1(raw).span)
    #expect(outcome == .complete(length: latin1(raw).count), sourceLocation: sourceLocation)
    return parser.head
}

/// The head of a GET with these field lines behind its Host.
func head(fields lines: String, version: String = "1.1", sourceLocation: SourceLocation = #_sourceLocation)
    -> RequestHead
{
    head("GET / HTTP/\(version)\r\nHost: a\r\n\(lines)\r\n\r\n", sourceLocation: sourceLocation)
}

/// Every case of every topic: what the properties that hold for all heads are tested with.
enum HeadCases {
    static let all =
        requestLines + targets + hosts + fieldLines + lengths + encodings + connections

    static let taken = all.filter { $0.refusal == nil }
}
