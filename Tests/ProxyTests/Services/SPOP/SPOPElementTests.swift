// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@testable import Proxy

@Suite("Elements of SPOP")
struct SPOPElementTests {
    private func number(_ bytes: [UInt8]) throws(SPOPFault) -> UInt64 {
        var scanner = SPOPScanner(ByteRange(start: 0, end: bytes.count))
        let value = try scanner.number(in: bytes.span)
        #expect(scanner.isAtEnd)
        return value
    }

    @Test(
        "SPOP numbers are read at the limits of each length",
        arguments: [
            (0, [0]), (239, [239]), (240, [240, 0]), (2287, [255, 127]), (2288, [240, 128, 0]),
            (264_431, [255, 255, 127]), (264_432, [240, 128, 128, 0]),
        ] as [(UInt64, [UInt8])])
    func edges(_ value: UInt64, _ bytes: [UInt8]) throws {
        #expect(try number(bytes) == value)
        #expect(SPOPPeer.number(value) == bytes)
    }

    @Test("the largest SPOP number is read, and a larger or truncated one is a fault")
    func faults() throws {
        let largest = SPOPPeer.number(.max)
        #expect(try number(largest) == .max)
        var beyond = largest
        beyond[beyond.count - 1] += 1
        #expect(throws: SPOPFault.frameInvalid) { try number(beyond) }
        #expect(throws: SPOPFault.frameInvalid) { try number([UInt8](repeating: 255, count: 40)) }
        #expect(throws: SPOPFault.frameInvalid) { try number(largest.dropLast()) }
        #expect(throws: SPOPFault.frameInvalid) { try number([]) }
    }

    @Test("a SPOP frame is read once it is complete")
    func whole() throws {
        let bytes = SPOPPeer.question("POST", "/b?c", stream: 70_000, number: 3) + [0, 0]
        for count in 0..<bytes.count - 2 {
            #expect(try SPOPFrame.read(Array(bytes.prefix(count)).span, limit: 1000) == nil)
        }
        let frame = try #require(try SPOPFrame.read(bytes.span, limit: 1000))
        #expect(frame.kind == .notify && frame.stream == 70_000 && frame.number == 3)
        #expect(frame.length == bytes.count - 2 && frame.payload.end == frame.length)
        #expect(throws: SPOPFault.frameTooBig) { try SPOPFrame.read(bytes.span, limit: frame.length - 5) }
        let asked = try SPOPNotification.read(frame.payload, in: bytes.span)
        var head = ByteQueue()
        try asked.get().writeHead(in: bytes.span, to: &head)
        #expect(String(decoding: head.copy(), as: UTF8.self) == "POST /b?c HTTP/1.1\r\nhost: bank.example\r\n\r\n")
    }

    @Test("each type of SPOP value can be skipped, and a truncated value is a fault")
    func values() throws {
        let all: [[UInt8]] = [
            [0], [1], [17], [2, 5], [3, 240, 1], [4, 9], [5, 9], [6, 1, 2, 3, 4],
            [7] + [UInt8](repeating: 1, count: 16),
            [8, 2, 65, 66], [9, 1, 0],
        ]
        for value in all {
            var scanner = SPOPScanner(ByteRange(start: 0, end: value.count))
            _ = try scanner.value(in: value.span)
            #expect(scanner.isAtEnd, "\(value)")
            for end in 0..<value.count {
                var cut = SPOPScanner(ByteRange(start: 0, end: end))
                #expect(throws: SPOPFault.frameInvalid, "\(value) \(end)") { _ = try cut.value(in: value.span) }
            }
        }
        var unknown = SPOPScanner(ByteRange(start: 0, end: 1))
        #expect(throws: SPOPFault.frameInvalid) { _ = try unknown.value(in: [10].span) }
    }
}
