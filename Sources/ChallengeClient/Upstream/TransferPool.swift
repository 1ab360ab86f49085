// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import EventLoop
internal import HTTPWire

/// The libcurl streams of an upstream whose requests may share connections.
final class TransferPool {
    /// The libcurl instance with these connections.
    let driver: CurlDriver
    /// The start queue of streams that may share an HTTP/2 connection.
    let startQueue: HTTP2StartQueue?
    /// True if the driver is for this pool only, and is closed after its end.
    private let ownsDriver: Bool
    private var idle: [CurlStream] = []
    /// The number of streams in use.
    private var busy = 0
    private var hasEnded = false
    /// The limit of idle libcurl streams. libcurl holds the connections, not the streams.
    private static let maxIdle = 256

    init(driver: CurlDriver, ownsDriver: Bool, startQueue: HTTP2StartQueue?) {
        self.driver = driver
        self.ownsDriver = ownsDriver
        self.startQueue = startQueue
    }

    /// Removes and returns an idle stream, if there is one.
    func take() -> CurlStream? {
        guard let stream = idle.popLast() else { return nil }
        busy += 1
        return stream
    }

    /// Counts a new stream, which `put` takes back.
    func add() { busy += 1 }

    /// Takes back a stream after its request. `isReusable`: it can carry another one.
    func put(_ stream: CurlStream, isReusable: Bool) {
        busy -= 1
        guard !hasEnded else { return closeDriver() }
        if isReusable, idle.count < Self.maxIdle { idle.append(stream) }
    }

    /// Drops the idle streams, and closes the pool's own connections as soon as no stream uses them.
    func end() {
        hasEnded = true
        idle = []
        closeDriver()
    }

    private func closeDriver() {
        if ownsDriver, busy == 0 { driver.close() }
    }
}

/// A stream with its own connection, idle between two requests.
protocol IdleStream: AnyObject {
    /// The start of the current idle time.
    var idleSince: LoopInstant { get }
    /// True if the connection can take a request: nothing was received while idle.
    var isFresh: Bool { get }
    /// Makes the stream idle after a request. Returns true if the connection can take another.
    func becomeIdle(now: LoopInstant) -> Bool
    /// Closes the stream in any state, with its connection.
    func close()
}

/// The idle HTTP/1.1 connections to one upstream on one worker, with their shared receive buffer.
final class IdleStreams<Stream: IdleStream> {
    /// The longest idle time, as of libcurl (`CURLOPT_MAXAGE_CONN`): middleboxes may have dropped older connections.
    private let longest = LoopDelay(.seconds(118))
    /// The time after a poll within which the state of idle connections counts as current.
    private let recent = LoopDelay(.milliseconds(2))

    private let limit: Int
    private var isClosed = false
    /// Idle streams in order of idle time: the last is reused first, and unused ones grow old.
    private var streams: [Stream] = []
    /// Lent to the stream that reads, so that waiting streams need no buffer.
    private var memory = ByteQueue()

    /// Creates a pool of at most `limit` connections.
    init(limit: Int) { self.limit = limit }

    /// Returns an idle stream that can take `request` at once.
    func take(for request: ExchangeRequest, on loop: EventLoop) -> Stream? {
        let now = loop.now
        // The loop reports bytes on idle connections; those received since its last poll are visible only at the
        // socket. A request that may be resent (RFC 9110 §9.2.2) skips that check if the poll was a moment ago.
        let canResend = request.canResend && !request.triesCredential && loop.readNow() < now + recent
        while let stream = streams.popLast() {
            if canResend || stream.isFresh, now < stream.idleSince + longest { return stream }
            stream.close()
        }
        return nil
    }

    /// Adds `stream` to the pool if possible, otherwise closes the stream.
    func put(_ stream: Stream, now: LoopInstant) {
        if !isClosed, streams.count < limit, stream.becomeIdle(now: now) {
            streams.append(stream)
        } else {
            stream.close()
        }
        if let oldest = streams.first, now >= oldest.idleSince + longest {
            streams.removeFirst()
            oldest.close()
        }
    }

    /// Removes a stream that is being closed.
    func remove(_ stream: Stream) { streams.removeAll { $0 === stream } }

    /// Closes all streams, and every one that is added later.
    func close() {
        isClosed = true
        for stream in streams { stream.close() }
        streams = []
    }

    /// Swaps the shared buffer with `input`, if that holds no bytes.
    func exchangeMemory(with input: inout ByteQueue) {
        if input.isEmpty { swap(&input, &memory) }
    }
}

/// Delays simultaneous transfers so that they share one HTTP/2 connection.
///
/// Until a connection is established, libcurl does not know if it can be shared: 64 transfers would make 64
/// connections. So while one transfer connects the others wait, but only for a short time, as connecting may fail.
/// (libcurl's own option, `CURLOPT_PIPEWAIT`, also serializes the connections to an HTTP/1.1 server.)
final class HTTP2StartQueue {
    /// The number of transfers per connection (`CURLMOPT_MAX_CONCURRENT_STREAMS`, left at its default).
    private static let maxPerConnection = 100
    /// The longest wait for a connection, in milliseconds.
    private static let timeout = 250

    /// The state of a stream in the queue.
    enum State {
        case none
        case running
        case waiting
    }

    private let loop: EventLoop
    private let driver: CurlDriver
    private let timer: LazyTimer
    /// The stream whose connection the others wait for.
    private var first: CurlStream?
    private var waiting: [CurlStream] = []
    private var running = 0
    /// True if the server has answered in HTTP/1.1.
    private var isHTTP1Only = false

    init(loop: EventLoop, driver: CurlDriver) {
        self.loop = loop
        self.driver = driver
        timer = LazyTimer(loop: loop)
        timer.onExpiry = { [weak self] in self?.release(isConnected: false) }
    }

    /// Starts `stream` now, or once the pending connection is established.
    func start(_ stream: CurlStream) throws(CurlError) {
        if first != nil {
            stream.startState = .waiting
            waiting.append(stream)
            return
        }
        if running % Self.maxPerConnection == 0, !isHTTP1Only {
            first = stream
            stream.startQueue = self
            timer.arm(at: loop.now.advanced(byMilliseconds: Self.timeout))
        }
        try run(stream)
    }

    /// Starts the waiting streams after the first one has connected, or has ended.
    func firstSettled(isConnected: Bool) { release(isConnected: isConnected) }

    /// Removes `stream`, which is over, in any state.
    func ended(_ stream: CurlStream) {
        defer { stream.startState = .none }
        if stream.startState == .waiting { waiting.removeAll { $0 === stream } }
        guard stream.startState == .running else { return }
        running -= 1
        if let version = stream.transfer.spokenVersion { isHTTP1Only = version < 2 }
        if first === stream { release(isConnected: false) }
    }

    private func release(isConnected: Bool) {
        first?.startQueue = nil
        first = nil
        timer.disarm()
        let released = waiting
        waiting = []
        for stream in released {
            stream.startState = .none
            do throws(CurlError) {
                if isConnected {
                    // One of them may be the first on the next connection.
                    try start(stream)
                } else {
                    // After a failed connection the others do not wait for one another.
                    try run(stream)
                }
            } catch {
                stream.transferEnded(stream.easy, error: error)
            }
        }
    }

    private func run(_ stream: CurlStream) throws(CurlError) {
        running += 1
        stream.startState = .running
        try driver.start(stream)
    }
}
