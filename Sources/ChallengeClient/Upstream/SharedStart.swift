// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import EventLoop

/// Lets transfers that start at once to one upstream share a connection of HTTP/2.
///
/// Until a connection stands libcurl does not know whether it can be shared: 64 transfers would make 64 of them. So while one
/// transfer makes a connection the others wait, though not for long: the connection may not come about. (libcurl's own
/// way to wait, CURLOPT_PIPEWAIT, also has the connections of an HTTP/1.1 server made one after the other.)
final class SharedStart {
    /// How many transfers share one connection (`CURLMOPT_MAX_CONCURRENT_STREAMS`, which we leave at its default).
    private static let mostPerConnection = 100
    /// How long a connection is waited for, in milliseconds.
    private static let patience = 250

    /// Where a transfer stands.
    enum Place {
        case none
        case running
        case waiting
    }

    private let loop: EventLoop
    private let driver: CurlDriver
    private let timer: LazyTimer
    /// The transfer that the others wait for.
    private var first: CurlStream?
    private var waiting: [CurlStream] = []
    private var running = 0
    /// True if the server has said that it speaks HTTP/1.1.
    private var isPointless = false

    init(loop: EventLoop, driver: CurlDriver) {
        self.loop = loop
        self.driver = driver
        timer = LazyTimer(loop: loop)
        timer.onExpiry = { [weak self] in self?.release(isConnected: false) }
    }

    /// Starts `stream`, now or when the connection stands that is under way.
    func start(_ stream: CurlStream) throws(CurlError) {
        if first != nil {
            stream.place = .waiting
            waiting.append(stream)
            return
        }
        if running % Self.mostPerConnection == 0, !isPointless {
            first = stream
            stream.sharedStart = self
            timer.arm(at: loop.now.advanced(byMilliseconds: Self.patience))
        }
        try run(stream)
    }

    /// The transfer that the others wait for has a connection, or has ended without one.
    func firstIsBack(isConnected: Bool) { release(isConnected: isConnected) }

    /// `stream` is over, wherever it stood.
    func ended(_ stream: CurlStream) {
        defer { stream.place = .none }
        if stream.place == .waiting { waiting.removeAll { $0 === stream } }
        guard stream.place == .running else { return }
        running -= 1
        if let version = stream.transfer.spokenVersion { isPointless = version < 2 }
        if first === stream { release(isConnected: false) }
    }

    private func release(isConnected: Bool) {
        first?.sharedStart = nil
        first = nil
        timer.disarm()
        let released = waiting
        waiting = []
        for stream in released {
            stream.place = .none
            do throws(CurlError) {
                if isConnected {
                    // One of them may be the first on the next connection.
                    try start(stream)
                } else {
                    // What did not come about for the first is not waited for again by one after the other.
                    try run(stream)
                }
            } catch {
                stream.transferEnded(stream.easy, error: error)
            }
        }
    }

    private func run(_ stream: CurlStream) throws(CurlError) {
        running += 1
        stream.place = .running
        try driver.start(stream)
    }
}
