// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Latches that are kept in memory, for programs whose credentials live no longer than they do.
public final class MemoryLatches: LatchBook {
    private struct Closed {
        let key: LatchKey
        let credential: Credential
        let latch: Latch
    }

    /// So many are kept; beyond, the oldest goes.
    private static let most = 256

    private let closed = Mutex<[Closed]>([])

    /// All open.
    public init() {}

    /// The latch that is closed for this value.
    public func closedLatch(_ key: LatchKey, for credential: Credential, now: Int64) -> Latch? {
        closed.withLock { closed in
            closed.removeAll { $0.latch.opensAt.map { $0 <= now } ?? false }
            return closed.last { $0.key == key && $0.credential.fields == credential.fields }?.latch
        }
    }

    /// Closes the latch for this value.
    public func close(_ key: LatchKey, for credential: Credential, _ latch: Latch) {
        closed.withLock { closed in
            closed.removeAll { $0.key == key && $0.credential.fields == credential.fields }
            if closed.count >= Self.most { closed.removeFirst() }
            closed.append(Closed(key: key, credential: credential, latch: latch))
        }
    }

    /// Opens all: what was rejected may be sent again.
    public func openAll() { closed.withLock { $0.removeAll() } }
}
