// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
package import EventLoop
internal import Glibc
package import HTTPWire
internal import System

/// A connection made by libcurl with the upstream's settings, for use without libcurl's HTTP.
///
/// For HTTP/1.1 requests, and for the protocol after a 101. Owned by its holder, and open until `close` or the release.
package final class UpstreamConnection {
    /// The result of one receive call.
    package enum Received: Equatable, Sendable {
        /// That many bytes were appended to the buffer.
        case bytes(Int)
        /// The upstream has ended its side; nothing more will come.
        case end
        /// Nothing for now.
        case nothing
    }

    /// The error of a connection that can no longer be used.
    package struct Broken: Error {}

    /// The bytes received together with the head of the 101.
    package var received = ByteQueue()
    /// `timeouts.idle` of the upstream.
    package let idleDelay: LoopDelay
    /// True if TLS is in use, so that one side alone cannot be ended: libcurl has no call for that.
    package let isSecure: Bool
    /// The socket; -1 before it is there and after `close`.
    package private(set) var descriptor: Int32 = -1

    private let easy: EasyHandle
    private let driver: CurlDriver
    let loop: EventLoop

    /// A connection that `easy` will make, not yet opened.
    package init(easy: EasyHandle, driver: CurlDriver, loop: EventLoop, idleDelay: LoopDelay, isSecure: Bool) {
        self.easy = easy
        self.driver = driver
        self.loop = loop
        self.idleDelay = idleDelay
        self.isSecure = isSecure
    }

    deinit {
        // The loop has ended with the connection open, and no longer watches the descriptor.
        if !isSecure, descriptor >= 0 { _ = Glibc.close(descriptor) }
    }

    /// Makes libcurl connect; `delegate` is called at the end, not from within.
    package func open(telling delegate: any TransferDelegate) throws(CurlError) {
        try driver.start(easy, delegate: delegate)
    }

    /// Takes over the socket after libcurl has connected. Returns false if libcurl has no socket.
    ///
    /// Without TLS the socket is duplicated and owned here: at each connect libcurl closes connections idle for two
    /// minutes, and counts one as idle on which it has not sent and received itself. (The first `curl_easy_send` marks
    /// the connection as used.)
    package func take() -> Bool {
        guard let socket = easy.activeSocket else { return false }
        if isSecure {
            descriptor = socket
        } else {
            descriptor = fcntl(socket, F_DUPFD_CLOEXEC, 0)
            driver.stop(easy)
        }
        return descriptor >= 0
    }

    /// Sets the events at the descriptor that `handler` is called for.
    package func watch(for interest: Interest, handler: any ReadinessHandler) {
        guard descriptor >= 0 else { return }
        loop.watch(descriptor, for: interest, handler: handler)
    }

    /// Sends from the front of `queue` as much as the connection accepts, and consumes that.
    ///
    /// Nothing may be appended before an unsent rest is gone: TLS requires a retry from the same address.
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

    /// Receives at most `most` bytes and appends them to `queue`.
    ///
    /// With TLS, bytes may be available while the descriptor is not readable: a caller that stopped before `.nothing`
    /// has to call again by itself.
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

    // Without TLS the descriptor is used directly: libcurl would search all its connections at each call.

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

    /// True if nothing was received and the upstream has not ended the connection.
    var isQuiet: Bool {
        var byte: UInt8 = 0
        return unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) < 0 && errno == EAGAIN
    }

    /// Ends the sending side, so that the upstream can still send. Returns false if that is not possible.
    package func endOutput() -> Bool {
        guard !isSecure, descriptor >= 0 else { return false }
        return shutdown(descriptor, Int32(Glibc.SHUT_WR)) == 0
    }

    /// Closes the connection. `resetting`: by a reset, so that the upstream sees no orderly end.
    package func close(resetting: Bool = false) {
        if resetting, descriptor >= 0 { Sockets.resetOnClose(descriptor) }
        if !isSecure, descriptor >= 0 {
            loop.forget(descriptor)
            _ = Glibc.close(descriptor)
        } else {
            driver.stop(easy)
        }
        descriptor = -1
    }
}
