// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

@testable import Proxy

/// Reads HAProxy's frames to an authority. A question is read as `FrameOracle` reads it, and becomes one head whose
/// first line has its method and its target, and nothing else.
func fuzzFrames(_ input: Span<UInt8>) throws(Violation) {
    let count = UInt32(input.count)
    let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } + input.array
    guard let frame = try wholeFrame(bytes.span) else { return }
    if frame.kind == .hello { try checkGreeting(frame, bytes.span) }
    let expected = FrameOracle(bytes[frame.payload.bounds]).question
    let found = try? SPOPNotification.read(frame.payload, in: bytes.span)
    guard case .success(let asked) = found, case .question(let method, let target, let fields) = expected else {
        let isSame =
            switch (found, expected) {
            case (nil, .malformed), (.failure(.messageUnknown), .unknown),
                (.failure(.argumentsIncomplete), .incomplete),
                (.failure(.argumentInvalid), .invalid):
                true
            default: false
            }
        try require(isSame, "\(String(describing: found)) where \(expected) is right")
        return
    }
    var head = ByteQueue()
    asked.writeHead(in: bytes.span, to: &head)
    try require(
        head.copy() == method + [0x20] + target + Array(" HTTP/1.1\r\n".utf8) + fields,
        "the head is \(String(decoding: head.copy(), as: UTF8.self))")
    var parser = RequestHeadParser(limits: HeadLimits(line: 1 << 20, head: 1 << 20))
    guard case .complete(head.count) = head.withSpan({ parser.parse($0) }) else { return }
    let (line, rest) = head.withSpan { ($0.copy(parser.head.methodRange), $0.copy(parser.head.target.range)) }
    try require(line == method && rest == target, "the head has another first line than the question")
}

/// Returns the frame in these bytes; `nil` if they are not a valid one.
private func wholeFrame(_ bytes: Span<UInt8>) throws(Violation) -> SPOPFrame? {
    let limit = bytes.count - SPOPFrame.lengthBytes
    let early = try? SPOPFrame.read(bytes.extracting(0..<bytes.count - 1), limit: limit)
    try require(early == .some(nil), "a frame is read before it is whole")
    do throws(SPOPFault) {
        guard let frame = try SPOPFrame.read(bytes, limit: limit) else { throw .none }
        return frame
    } catch {
        try require(error == .frameInvalid || error == .fragmentationUnsupported, "a whole frame: \(error)")
        return nil
    }
}

/// Checks that the agreed values are within both sides' limits.
private func checkGreeting(_ frame: SPOPFrame, _ bytes: Span<UInt8>) throws(Violation) {
    guard let hello = try? SPOPHello(frame.payload, in: bytes) else { return }
    try require(
        (SPOPFrame.smallest...SPOPFrame.largest).contains(hello.frameLimit), "frames of \(hello.frameLimit) bytes")
}

/// A reader of a NOTIFY frame's payload after SPOE.txt of HAProxy, all at once and with no code in common with the
/// reader under test.
struct FrameOracle {
    enum Question: Equatable {
        case malformed, unknown, incomplete, invalid
        case question(method: [UInt8], target: [UInt8], fields: [UInt8])
    }

    private struct End: Error {}

    private var rest: ArraySlice<UInt8>

    init(_ payload: ArraySlice<UInt8>) { rest = payload }

    /// The question in the frame.
    var question: Question {
        var copy = self
        guard let messages = try? copy.messages() else { return .malformed }
        guard messages.count == 1, let message = messages.first, message.name == "authorize" else { return .unknown }
        var found: [[UInt8]] = []
        for name in ["method", "target", "fields"] {
            let values = message.arguments.filter { $0.name == name }
            guard values.count == 1, let text = values[0].text else { return .incomplete }
            found.append(text)
        }
        let words = found.prefix(2)
        guard words.allSatisfy({ !$0.isEmpty && $0.allSatisfy { $0 > 32 && $0 != 127 } }) else { return .invalid }
        return .question(method: found[0], target: found[1], fields: found[2])
    }

    private mutating func messages() throws -> [(name: String, arguments: [(name: String, text: [UInt8]?)])] {
        var messages: [(name: String, arguments: [(name: String, text: [UInt8]?)])] = []
        while !rest.isEmpty {
            let name = try text()
            var arguments: [(name: String, text: [UInt8]?)] = []
            for _ in 0..<(try take(1)[0]) { arguments.append((Self.name(try text()), try value())) }
            messages.append((Self.name(name), arguments))
        }
        return messages
    }

    private mutating func value() throws -> [UInt8]? {
        switch try take(1)[0] % 16 {
        case 0, 1: break
        case 2, 3, 4, 5: _ = try number()
        case 6: _ = try take(4)
        case 7: _ = try take(16)
        case 8, 9: return try text()
        default: throw End()
        }
        return nil
    }

    private mutating func text() throws -> [UInt8] {
        guard let count = Int(exactly: try number()) else { throw End() }
        return try take(count)
    }

    /// In 128 bits, in which nothing here overflows before it is seen to be too large.
    private mutating func number() throws -> UInt64 {
        var value = UInt128(try take(1)[0])
        var factor: UInt128 = 16
        var isMore = value >= 240
        while isMore {
            let next = UInt128(try take(1)[0])
            isMore = next >= 128
            // Beyond all numbers of 64 bits, be it by zeros.
            guard factor <= UInt128(UInt64.max) else { throw End() }
            value += next * factor
            factor *= 128
        }
        guard let small = UInt64(exactly: value) else { throw End() }
        return small
    }

    private mutating func take(_ count: Int) throws -> [UInt8] {
        guard count <= rest.count else { throw End() }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    private static func name(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
