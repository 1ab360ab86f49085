// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import Glibc

/// Watches the connections that rest between two transfers.
///
/// What an upstream sends there is the answer to no request and must not be taken for that of the next one (RFC 9112 §9.2), which
/// may be another caller's. libcurl before 8.1 takes up a connection on which something waits, but none that has ended:
/// so the connection is ended here.
final class IdleConnections: ReadinessHandler {
    private unowned let loop: EventLoop
    /// Pieces dropped per turn.
    private static let mostPerTurn = 16

    init(loop: EventLoop) { self.loop = loop }

    func ready(_ fd: Int32, _ events: Readiness) {
        unsafe withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { space in
            for _ in 0..<Self.mostPerTurn {
                let count = unsafe recv(fd, space.baseAddress, space.count, Int32(MSG_DONTWAIT))
                if count > 0 {
                    _ = shutdown(fd, Int32(SHUT_RDWR))
                    continue
                }
                // At the end libcurl notices by itself.
                if count == 0 || (errno != EAGAIN && errno != EINTR) { loop.relax(fd) }
                return
            }
        }
    }
}
