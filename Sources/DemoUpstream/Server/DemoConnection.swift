// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import HTTPWire

/// One connection, read and answered by its own thread.
struct DemoConnection {
    private let descriptor: Int32
    /// The longest body that is taken, in bytes.
    private static let longestBody = 1 << 26

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var on: Int32 = 1
        unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        var idle = timeval(tv_sec: 75, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &idle, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Has its requests answered by the handler until either side ends it.
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

    /// The next request, and whether another may follow; `nil` at the end.
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
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = unsafe recv(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else { return false }
        waiting.append(bytes[..<count])
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

    private func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
