// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import HTTPWire
internal import System

/// Connection served by its own thread.
struct DemoConnection {
    private let descriptor: Int32
    /// Maximum size of a request's body, in bytes.
    private static let longestBody = 1 << 26

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        Sockets.sendAtOnce(descriptor)
        Sockets.setTimeouts(descriptor, receive: .seconds(75))
    }

    /// Serves requests with `handler` until either side closes the connection.
    func serve(_ handler: (DemoRequest) -> DemoResponse, _ tell: DemoTeller) {
        var waiting = ByteQueue()
        do throws(WireError) {
            while let (request, keepsAlive) = try nextRequest(in: &waiting) {
                let isSent = send(handler(request), isHead: request.method == "HEAD", keepsAlive: keepsAlive)
                guard isSent, keepsAlive else { return }
            }
        } catch {
            tell(.noRequest(reason: error.detail))
            _ = send(.text(error.status, error.detail), isHead: false, keepsAlive: false)
        }
    }

    // MARK: Requests

    /// Returns the next request, and true if another may follow; nil at the end.
    private func nextRequest(in waiting: inout ByteQueue) throws(WireError) -> (DemoRequest, keepsAlive: Bool)? {
        var parser = RequestHeadParser()
        while true {
            switch waiting.withSpan({ parser.parse($0) }) {
            case .incomplete: guard receive(into: &waiting) else { return nil }
            case .refused(let error): throw error
            case .complete(let length):
                let head = parser.head
                let bytes = waiting.copy()
                waiting.consume(length)
                if head.expectsContinue, !send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) { return nil }
                guard let body = try body(head.body, in: &waiting) else { return nil }
                return (DemoRequest(head, in: bytes.span, body: body), head.keepsAlive)
            }
        }
    }

    private func body(_ framing: BodyFraming, in waiting: inout ByteQueue) throws(WireError) -> [UInt8]? {
        var decoder = BodyDecoder(framing: framing)
        var body: [UInt8] = []
        while body.count <= Self.longestBody {
            switch waiting.withSpan({ decoder.decode($0) }) {
            case .data(let range, let consumed):
                body += waiting.withSpan { $0.copy(range) }
                waiting.consume(consumed)
            case .needMore(let consumed):
                waiting.consume(consumed)
                guard receive(into: &waiting) else { return nil }
            case .end(let consumed):
                waiting.consume(consumed)
                return body
            case .refused(let error): throw error
            }
        }
        return nil
    }

    private func receive(into waiting: inout ByteQueue) -> Bool {
        guard let bytes = try? DescriptorIO.read(from: descriptor, atMost: 16_384), !bytes.isEmpty else { return false }
        waiting.append(bytes)
        return true
    }

    // MARK: Responses

    private func send(_ response: DemoResponse, isHead: Bool, keepsAlive: Bool) -> Bool {
        var queue = ByteQueue()
        ResponseWriter.statusLine(response.status, to: &queue)
        queue.append("Date: ")
        HTTPDate.append(secondsSince1970: Int64(time(nil)), to: &queue)
        queue.append("\r\n")
        for field in response.fields { ResponseWriter.field(field.name, field.value, to: &queue) }
        switch response.body {
        case .bytes(let bytes): ResponseWriter.contentLength(UInt64(bytes.count), to: &queue)
        case .ticks: ResponseWriter.transferEncodingChunked(to: &queue)
        }
        ResponseWriter.connection(keepsAlive: keepsAlive, to: .http11, in: &queue)
        ResponseWriter.endOfHead(to: &queue)
        if case .bytes(let bytes) = response.body, !isHead { queue.append(bytes) }
        guard send(queue.copy()) else { return false }
        guard case .ticks(let count, let pause) = response.body, !isHead else { return true }
        return sendTicks(count, pause)
    }

    private func sendTicks(_ count: Int, _ pause: Int) -> Bool {
        for number in 1...max(count, 1) {
            var queue = ByteQueue()
            ResponseWriter.chunk(Array("data: tick \(number)\n\n".utf8).span, to: &queue)
            if number >= count { ResponseWriter.endOfChunks(to: &queue) }
            guard send(queue.copy()) else { return false }
            if number < count { usleep(UInt32(clamping: pause * 1000)) }
        }
        return true
    }

    private func send(_ bytes: [UInt8]) -> Bool { DescriptorIO.sendAll(bytes.span, on: descriptor) }
}
