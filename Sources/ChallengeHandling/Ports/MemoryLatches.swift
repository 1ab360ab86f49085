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

    private struct Accepted {
        let key: LatchKey
        let credential: Credential
        let acceptance: Acceptance
    }

    private let closed = Mutex<[Closed]>([])
    private let accepted = Mutex<[Accepted]>([])

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
        withdrawAcceptance(key, of: credential)
        closed.withLock { closed in
            closed.removeAll { $0.key == key && $0.credential.fields == credential.fields }
            if closed.count >= Self.most { closed.removeFirst() }
            closed.append(Closed(key: key, credential: credential, latch: latch))
        }
    }

    /// The mark of this value.
    public func acceptance(_ key: LatchKey, of credential: Credential) -> Acceptance? {
        accepted.withLock { accepted in
            accepted.last { $0.key == key && $0.credential.fields == credential.fields }?.acceptance
        }
    }

    /// Keeps a mark; one without a path leaves the path that is known.
    public func accept(_ key: LatchKey, _ credential: Credential, _ acceptance: Acceptance) {
        let known = self.acceptance(key, of: credential)
        accepted.withLock { accepted in
            accepted.removeAll { $0.key == key && $0.credential.fields == credential.fields }
            if accepted.count >= Self.most { accepted.removeFirst() }
            let mark = Acceptance(
                path: acceptance.path ?? known?.path, at: acceptance.at, wasAsked: acceptance.wasAsked)
            accepted.append(Accepted(key: key, credential: credential, acceptance: mark))
        }
    }

    /// Takes the mark of this value away.
    public func withdrawAcceptance(_ key: LatchKey, of credential: Credential) {
        accepted.withLock { $0.removeAll { $0.key == key && $0.credential.fields == credential.fields } }
    }

    /// Opens all: what was rejected may be sent again.
    public func openAll() { closed.withLock { $0.removeAll() } }
}
