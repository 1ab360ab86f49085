// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
package import EventLoop
internal import Glibc
package import HTTPWire

/// A connection to an upstream that libcurl has made, with all that the upstream's settings say of it, and on which we
/// speak ourselves: the handshake, and what comes after a 101.
///
/// It belongs to whoever has it, and lives until `close`, or as long as whoever has it; nothing else ends it.
package final class UpstreamConnection {
    /// What one attempt to receive brought.
    package enum Received: Equatable, Sendable {
        /// So many bytes were put into the buffer.
        case bytes(Int)
        /// The upstream has ended its side; nothing more will come.
        case end
        /// Nothing for now.
        case nothing
    }

    /// Why the connection can be used no more.
    package struct Broken: Error {}

    /// What came behind the head of the 101, in the same piece.
    package var received = ByteQueue()
    /// `timeouts.idle` of the upstream.
    package let idleDelay: LoopDelay
    /// True if there is TLS between here and the upstream, so that one side alone cannot be ended: libcurl has no call
    /// for it.
    package let isSecure: Bool
    /// The socket; -1 before it is there and after `close`.
    package private(set) var descriptor: Int32 = -1

    private let easy: EasyHandle
    private let driver: CurlDriver
    let loop: EventLoop

    init(easy: EasyHandle, driver: CurlDriver, loop: EventLoop, idleDelay: LoopDelay, isSecure: Bool) {
        self.easy = easy
        self.driver = driver
        self.loop = loop
        self.idleDelay = idleDelay
        self.isSecure = isSecure
    }

    deinit {
        // The loop has ended with the connection open, and has forgotten it.
        if !isSecure, descriptor >= 0 { _ = Glibc.close(descriptor) }
    }

    /// Has libcurl connect; `delegate` is told of the end of that, not from within this call.
    func open(telling delegate: any TransferDelegate) throws(CurlError) {
        try driver.start(easy, delegate: delegate)
    }

    /// libcurl has connected. False where it has no socket to show for it.
    ///
    /// Without TLS the socket is ours from here on: whenever libcurl connects, it closes what has rested for two minutes, and that
    /// counts a connection by which it has sent and received nothing itself. (The first `curl_easy_send` makes it one in use.)
    func take() -> Bool {
        guard let socket = easy.activeSocket else { return false }
        if isSecure {
            descriptor = socket
        } else {
            descriptor = fcntl(socket, F_DUPFD_CLOEXEC, 0)
            driver.stop(easy)
        }
        return descriptor >= 0
    }

    /// Tells `handler` of events at the descriptor.
    package func watch(for interest: Interest, handler: any ReadinessHandler) {
        guard descriptor >= 0 else { return }
        loop.watch(descriptor, for: interest, handler: handler)
    }

    /// Sends from the front of `queue` what the connection takes, and consumes it. Where some is left, nothing may be
    /// appended before it has gone: over TLS it must come again from the same place in memory.
    package func send(_ queue: inout ByteQueue) throws(Broken) {
        while !queue.isEmpty {
            var count = 0
            do throws(CurlError) {
                count = try unsafe queue.withUnsafeBytes { (bytes) throws(CurlError) in try unsafe send(bytes) }
            } catch {
                throw Broken()
            }
            guard count > 0 else { return }
            queue.consume(count)
        }
    }

    /// Receives at most `most` bytes behind those of `queue`. Over TLS bytes may wait while the descriptor is not readable: whoever
    /// has stopped asking before there was nothing asks again on its own account.
    package func receive(into queue: inout ByteQueue, atMost most: Int) throws(Broken) -> Received {
        var outcome = Received.nothing
        var isBroken = false
        unsafe queue.withUnsafeFreeSpace(minimum: most) { space in
            do throws(CurlError) {
                let space = unsafe UnsafeMutableRawBufferPointer(rebasing: space.prefix(most))
                let received = try unsafe isSecure ? easy.receive(into: space) : receiveDirectly(into: space)
                guard let count = received else { return 0 }
                outcome = count > 0 ? .bytes(count) : .end
                return count
            } catch {
                isBroken = true
                return 0
            }
        }
        if isBroken { throw Broken() }
        return outcome
    }

    // Without TLS in between the descriptor is all that there is: libcurl would look for the connection among all others, at
    // each call.

    private func send(_ bytes: UnsafeRawBufferPointer) throws(CurlError) -> Int {
        if isSecure { return try unsafe easy.send(bytes) }
        let count = unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if count >= 0 { return count }
        guard errno == EAGAIN || errno == EINTR else { throw .sendError }
        return 0
    }

    private func receiveDirectly(into space: UnsafeMutableRawBufferPointer) throws(CurlError) -> Int? {
        let count = unsafe recv(descriptor, space.baseAddress, space.count, 0)
        if count >= 0 { return count }
        guard errno == EAGAIN || errno == EINTR else { throw .receiveError }
        return nil
    }

    /// True if nothing has come and the upstream has not ended it.
    var isQuiet: Bool {
        var byte: UInt8 = 0
        return unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) < 0 && errno == EAGAIN
    }

    /// Ends our side, so that the upstream sees the end while it can still send. False where that cannot be done.
    package func endOutput() -> Bool {
        guard !isSecure, descriptor >= 0 else { return false }
        return shutdown(descriptor, Int32(Glibc.SHUT_WR)) == 0
    }

    /// Closes it. `resetting`: so that the upstream does not take it for an orderly end.
    package func close(resetting: Bool = false) {
        if resetting, descriptor >= 0 {
            var option = linger(l_onoff: 1, l_linger: 0)
            _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        if !isSecure, descriptor >= 0 {
            loop.forget(descriptor)
            _ = Glibc.close(descriptor)
        } else {
            driver.stop(easy)
        }
        descriptor = -1
    }
}
