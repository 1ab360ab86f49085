// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A body of 50 MB")
struct LargeBodyTests {
    private static let size = 50 * 1024 * 1024
    /// What the upstream generates: the alphabet over and over.
    private static let bytes: [UInt8] = {
        let block = (0..<2_600).flatMap { _ in Array("abcdefghijklmnopqrstuvwxyz".utf8) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size + block.count)
        while bytes.count < size { bytes += block }
        bytes.removeLast(bytes.count - size)
        return bytes
    }()

    @Test("comes down byte for byte, and is never in memory whole")
    func download() async throws {
        try await withBank { bank in
            let answer = try await bank.curl("/bytes?count=\(Self.size)")
            #expect(answer.exit == 0)
            #expect(answer.body == Self.bytes)
            #expect(try bank.daemon.peakKilobytes < 60_000)
        }
    }

    @Test("is held back where the caller does not read, and comes down when it does")
    func backPressure() async throws {
        try await withBank { bank in
            let connection = try bank.connect()
            await offPool { _ = connection.send("GET /open/bytes?count=\(Self.size) HTTP/1.0\r\n\r\n") }
            let first = await offPool { connection.receive(until: "abc") }
            #expect(first.contains("200"))
            // Requests of others go on meanwhile.
            for _ in 0..<5 { try await bank.expect("/balance", status: 200) }
            #expect(try bank.daemon.peakKilobytes < 60_000)
            let rest = await offPool { connection.rest() }
            #expect(rest.end == .closed)
            #expect(first.utf8.count + rest.bytes.count > Self.size)
            #expect(rest.bytes.suffix(1000) == Self.bytes.suffix(1000))
        }
    }

    @Test("goes up byte for byte, with its length told and in chunks", arguments: [false, true])
    func upload(isChunked: Bool) async throws {
        try await withBank { bank in
            // A body this long is streamed only on a session that is there.
            try await bank.expect("/echo", "-d", "", status: 200)
            let file = bank.folder.write(Self.bytes, to: "body")
            let framing = isChunked ? ["-H", "Transfer-Encoding: chunked"] : []
            let answer = try await Curl.run(
                framing + [
                    "-H", "Content-Type: application/octet-stream", "-X", "POST", "-T", file, bank.url("/echo"),
                ],
                in: bank.folder)
            #expect(answer.status == 200, "\(answer.summary)")
            #expect(answer.json?["sha256"]?.string == sha256(Self.bytes))
            #expect(try bank.daemon.peakKilobytes < 60_000)
        }
    }
}
