// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

@testable import Proxy

/// What HAProxy sends to an authority: a question is read as `FrameOracle` reads it, and becomes one head whose first line has its method
/// and its target, and nothing else.
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

/// The frame that these bytes are; none where they are no frame that is taken.
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

/// What is agreed on is within what both take.
private func checkGreeting(_ frame: SPOPFrame, _ bytes: Span<UInt8>) throws(Violation) {
    guard let hello = try? SPOPHello(frame.payload, in: bytes) else { return }
    try require(
        (SPOPFrame.smallest...SPOPFrame.largest).contains(hello.frameLimit), "frames of \(hello.frameLimit) bytes")
}
