// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import EventLoop

/// Returns to the kernel what connections have given back and nobody uses.
///
/// The allocator does so by itself only at the end of its heap, and there small objects of connections lie among the large
/// buffers: after a rush, the pages of all buffers would stay. Looking for them takes some milliseconds, hence not for each
/// connection but when enough has come together.
final class SpareMemory {
    /// So much is worth the look.
    private static let enough = 8 * 1024 * 1024
    /// Those who fall quiet after a rush do so one after the other.
    private static let delay = Duration.seconds(1)

    private let loop: EventLoop
    private let timer: LazyTimer
    private var bytes = 0

    init(loop: EventLoop) {
        self.loop = loop
        timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in
            self.bytes = 0
            clinux_return_memory()
        }
    }

    /// A connection has given back so much.
    func gaveBack(_ count: Int) {
        let before = bytes
        bytes += count
        if before < Self.enough, bytes >= Self.enough { timer.arm(at: loop.now + Self.delay) }
    }

    /// Gives the timer up.
    func close() { timer.cancel() }
}
