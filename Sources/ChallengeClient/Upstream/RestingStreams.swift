// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import HTTPWire

/// The connections of HTTP/1.1 to one upstream that rest between two requests, on one worker; and the memory that all of them read into.
final class RestingStreams {
    /// libcurl keeps a connection no longer either (`CURLOPT_MAXAGE_CONN`): what stands in between may have forgotten it.
    private static let longest = LoopDelay(.seconds(118))
    /// For so long after a wait the loop knows what has come on the connections that rest.
    private static let recent = LoopDelay(.milliseconds(2))

    private let limit: Int
    private var isClosed = false
    /// The one that rested last is the last: it is taken first, and those that are not needed grow old.
    private var streams: [HTTP1Stream] = []
    /// Lent to the one stream that reads, so that those that wait hold none.
    private var memory = ByteQueue()

    /// Room for `limit` of them.
    init(limit: Int) { self.limit = limit }

    /// One that can take `request` at once.
    func take(for request: ExchangeRequest, on loop: EventLoop) -> HTTP1Stream? {
        let now = loop.now
        // The loop tells of whatever comes on a connection that rests; what has come since its last wait shows only in a look at the
        // socket. A request that may go again (RFC 9110 §9.2.2) does without where that was a moment ago: it is sent once more if
        // the connection had ended.
        let mayGoAgain = request.mayGoAgain && loop.readNow() < now + Self.recent
        while let stream = streams.popLast() {
            if mayGoAgain || stream.isFresh, now < stream.restingSince + Self.longest { return stream }
            stream.close()
        }
        return nil
    }

    /// Has `stream` rest here, or closes it.
    func put(_ stream: HTTP1Stream, now: LoopInstant) {
        if !isClosed, streams.count < limit, stream.goToRest(now: now) {
            streams.append(stream)
        } else {
            stream.close()
        }
        if let oldest = streams.first, now >= oldest.restingSince + Self.longest {
            streams.removeFirst()
            oldest.close()
        }
    }

    /// `stream` is closed.
    func remove(_ stream: HTTP1Stream) { streams.removeAll { $0 === stream } }

    /// Closes all, and whatever comes later.
    func close() {
        isClosed = true
        for stream in streams { stream.close() }
        streams = []
    }

    /// Gives `input` the memory that is shared, or takes it back, where it holds nothing that is to be kept.
    func exchangeMemory(with input: inout ByteQueue) {
        if input.isEmpty { swap(&input, &memory) }
    }
}
