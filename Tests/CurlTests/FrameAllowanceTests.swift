// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Testing

@Suite("Bytes of an HTTP/2 session without a field or data")
struct FrameAllowanceTests {
    private static let read = 32 * 1024

    private static func content(fields: [Int] = [], data: [Int] = []) -> FrameAllowance.Content {
        var content = FrameAllowance.Content()
        for count in fields { content.addField(count) }
        for count in data { content.addData(count) }
        return content
    }

    private static func receive(
        _ allowance: inout FrameAllowance, _ count: Int, _ content: FrameAllowance.Content, at time: Int64
    ) -> Bool {
        allowance.receive(count, content, at: time)
    }

    /// Returns how often these bytes can be received, 100,000 times at most, one millisecond after the other.
    private func count(
        _ bytes: Int = read, _ content: FrameAllowance.Content = content(), sending sent: Int = 0,
        every milliseconds: Int64 = 0
    ) -> Int {
        var allowance = FrameAllowance()
        var count = 0
        while count < 100_000, Self.receive(&allowance, bytes, content, at: Int64(count) * milliseconds) {
            allowance.send(sent)
            count += 1
        }
        return count
    }

    @Test("a flood of frames without content ends after one megabyte, for good")
    func flood() {
        #expect(count() == FrameAllowance.capacity / Self.read)
        var allowance = FrameAllowance()
        #expect(!Self.receive(&allowance, FrameAllowance.capacity + 1, Self.content(), at: 0))
        #expect(allowance.isExceeded)
        #expect(!Self.receive(&allowance, 1, Self.content(data: [1]), at: 1_000_000))
    }

    @Test("a byte of data or a short field in each read does not pay for the rest of it")
    func sparse() {
        #expect(count(Self.read, Self.content(data: [1])) < 40)
        #expect(count(Self.read, Self.content(fields: [10])) < 40)
        // Padding, of data and of a head.
        #expect(count(9 + 256, Self.content(data: [1])) < 5_000)
        #expect(count(9 + 256, Self.content(fields: [1])) < 5_000)
    }

    @Test("fields that the server compresses pay for the bytes that they took, not for others")
    func compressed() {
        var allowance = FrameAllowance()
        for _ in 0..<1000 {
            #expect(Self.receive(&allowance, 20, Self.content(fields: [4096, 4096]), at: 0))
            if !Self.receive(&allowance, 1_200, Self.content(), at: 0) { break }
        }
        #expect(allowance.isExceeded)
    }

    @Test("data and heads in frames of any size go on, with the header of a frame in a read of its own, too")
    func content() {
        #expect(count(10, Self.content(data: [1])) == 100_000)
        #expect(count(Self.read, Self.content(data: [16_375, 16_375])) == 100_000)
        #expect(count(12, Self.content(fields: [10, 20])) == 100_000)
        #expect(count(.max, Self.content(data: [.max, .max])) == 100_000)
        #expect(count(.max, Self.content(fields: [.max, .max])) == 100_000)
        var allowance = FrameAllowance()
        let isWhole = (0..<1_000_000).allSatisfy { _ in
            Self.receive(&allowance, 9, Self.content(), at: 0)
                && Self.receive(&allowance, 100, Self.content(data: [100]), at: 0)
        }
        #expect(isWhole)
    }

    @Test("keep-alive frames go on for as long as the server likes, whether anything else comes or not")
    func keepAlive() {
        // PING (RFC 9113 §6.7) once a second, and a thousand times a second.
        #expect(count(17, every: 1000) == 100_000)
        #expect(count(17, every: 1) == 100_000)
        // Faster ones, 64,000 a second, do not.
        #expect(count(64 * 17, every: 1) < 2_000)
    }

    @Test("a server that acknowledges an upload in small pieces goes on, one that provokes acknowledgements does not")
    func upload() {
        // Two WINDOW_UPDATEs for each 512 bytes.
        #expect(count(2 * 13, sending: 512 + 9) == 100_000)
        #expect(count(17, sending: 17) < 100_000)
        #expect(count(9 * 1000, sending: 9 * 1000) < 1_000)
    }

    @Test("a clock that goes back or leaps changes nothing")
    func clock() {
        var allowance = FrameAllowance()
        #expect(Self.receive(&allowance, FrameAllowance.capacity, Self.content(), at: .max))
        #expect(!Self.receive(&allowance, 1, Self.content(), at: .min))
        allowance = FrameAllowance()
        #expect(Self.receive(&allowance, FrameAllowance.capacity, Self.content(), at: .min))
        #expect(Self.receive(&allowance, FrameAllowance.capacity, Self.content(), at: .max))
    }
}
