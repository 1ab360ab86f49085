// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import EventLoop

/// Returns memory that connections have released to the kernel.
///
/// By itself, the allocator returns only the end of its heap. Small objects of connections lie there among the large
/// buffers, so the pages of all buffers would stay after a rush. The search for free pages takes some milliseconds. It
/// is therefore not done for each connection, but once enough memory has been released, or half of the connections have closed.
final class SpareMemory {
    /// The delay of the search. After a rush, connections become quiet one after the other.
    private static let delay = Duration.seconds(1)

    private let loop: EventLoop
    private let timer: LazyTimer
    private var account = SpareMemoryAccount()

    init(loop: EventLoop) {
        self.loop = loop
        timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in
            self.account.memoryIsReturned()
            clinux_return_memory()
        }
    }

    /// Records that a connection has released `count` bytes.
    func released(_ count: Int) {
        if account.released(count) { timer.arm(at: loop.now + Self.delay) }
    }

    /// Records that a connection with buffers of `bytes` bytes has closed, and that `count` are left.
    func connectionClosed(left count: Int, holding bytes: Int) {
        if account.connectionClosed(left: count, holding: bytes) { timer.arm(at: loop.now + Self.delay) }
    }

    /// Cancels the timer.
    func close() { timer.cancel() }
}

/// Account of the memory that a search for free pages may find. A value.
struct SpareMemoryAccount {
    /// The number of released bytes that is worth a search.
    static let enough = 8 * 1024 * 1024
    /// The number of closed connections that is worth a search.
    static let enoughClosed = 64
    /// The least buffers of a closing connection that count, in bytes. The next connections use smaller ones again.
    static let large = 32 * 1024

    private var bytes = 0
    private var left = 0
    /// The most connections since the last search.
    private var most = 0
    private var isDue = false

    init() {}

    /// Records released bytes. Returns true if a search becomes due.
    mutating func released(_ count: Int) -> Bool {
        bytes += count
        return becomesDue(bytes >= Self.enough)
    }

    /// Records a closed connection. Returns true if a search becomes due: half of the connections have closed.
    ///
    /// A connection that closes frees its buffers of `size` bytes, the exchange and the upstream connection with it.
    mutating func connectionClosed(left count: Int, holding size: Int = 0) -> Bool {
        most = max(most, count + 1)
        left = count
        if size >= Self.large { bytes += size }
        let isHalf = count <= most / 2 && most - count >= Self.enoughClosed
        return becomesDue(isHalf || bytes >= Self.enough)
    }

    /// Records that a search has been done.
    mutating func memoryIsReturned() {
        (bytes, most, isDue) = (0, left, false)
    }

    private mutating func becomesDue(_ isEnough: Bool) -> Bool {
        defer { isDue = isDue || isEnough }
        return isEnough && !isDue
    }
}
