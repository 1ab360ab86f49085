// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Synchronization

/// Record of when a server accepted a held session, shared by all workers without a lock.
package final class SessionAcceptance: Sendable {
    /// Time at which the last accepted request was sent, in ns of the monotonic clock; 0 if none was.
    private let latest = Atomic<UInt64>(0)
    /// Earliest time of the next record of an address, in ms since 1970, and the pause before it in ms.
    private let nextAddressAt = Atomic<Int64>(.min)
    private let pause = Atomic<Int64>(0)
    private let newAddresses = Atomic<Int>(0)
    /// Paths that accepted the session, the newest first.
    private let paths = Mutex<[String]>([])

    private let isElsewhere = Atomic<Bool>(false)

    /// Time of the last proof that the session works, in ns of the monotonic clock; 0 if there was none.
    private let verifiedAt = Atomic<UInt64>(0)
    /// Path that asks for a login without the session.
    private let askingPath = Mutex<String?>(nil)
    private let searches = Atomic<Int>(0)
    private static let mostSearches = 4

    /// Minimum and maximum pause after a record that told nothing new, in ms. It doubles.
    private static let pauses: (first: Int64, longest: Int64) = (1_000, 60_000)

    /// Records that the server accepted a request that was sent at that time.
    package func accepted(sentAt time: UInt64) { latest.max(time, ordering: .relaxed) }

    /// Records that the server accepted the session by an answer whose request may be older than others.
    func isShown() { latest.max(1, ordering: .relaxed) }

    /// True if the server accepted the session since its login.
    package var isKnown: Bool { latest.load(ordering: .relaxed) > 0 }

    /// Returns true if the server accepted a request that was sent after that time.
    func isLater(than time: UInt64) -> Bool { latest.load(ordering: .relaxed) > time }

    /// Records that another proxy sends requests with the session, whose answers are not seen here.
    package func isHandedOut() { isElsewhere.store(true, ordering: .relaxed) }

    /// True if answers to requests with the session may have been seen elsewhere only.
    var wasHandedOut: Bool { isElsewhere.load(ordering: .relaxed) }

    /// Records that the session worked at that time, at an address that asks for a login without it.
    package func recordVerification(at time: UInt64) { verifiedAt.max(time, ordering: .relaxed) }

    /// Returns true if the session was proven at that time or later.
    package func wasVerified(since time: UInt64) -> Bool {
        let last = verifiedAt.load(ordering: .relaxed)
        return last > 0 && last >= time
    }

    /// Path that asks for a login without the session and was found by its requests; `nil` if none is known.
    package var asking: String? { askingPath.withLock { $0 } }

    /// Remembers a path that asks for a login without the session.
    package func remember(asking path: String) {
        guard path.utf8.count <= Acceptance.longestPath else { return }
        askingPath.withLock { $0 = path }
    }

    /// Returns true if another path may be tried in search of one that asks without the session.
    package func maySearch() -> Bool {
        asking == nil && searches.add(1, ordering: .relaxed).newValue <= Self.mostSearches
    }

    /// Remembers that the path accepted the session; returns true if it is new. One that can be asked again by GET is preferred.
    package func remember(_ path: String, isSafe: Bool) -> Bool {
        guard path.utf8.count <= Acceptance.longestPath else { return false }
        return paths.withLock { paths in
            guard !paths.contains(path), isSafe || paths.count < Acceptance.mostAddresses else { return false }
            paths.insert(path, at: 0)
            if paths.count > Acceptance.mostAddresses { paths.removeLast() }
            return true
        }
    }

    /// The paths that accepted the session, the newest first.
    package var acceptedPaths: [String] { paths.withLock { $0 } }

    /// Returns true if the address of an accepted request is worth a record at `now`, in ms since 1970.
    package func isAddressDue(now: Int64) -> Bool {
        let due = nextAddressAt.load(ordering: .relaxed)
        // The clock may have been set back.
        return now >= due || due.saturatingSubtract(now) > Self.pauses.longest
    }

    /// Notes that an address was recorded. The next one is due at once if this was new, and one of the first.
    package func recordedAddress(isNew: Bool, now: Int64) {
        if isNew, newAddresses.add(1, ordering: .relaxed).newValue < Acceptance.mostAddresses { return }
        let next =
            isNew
            ? Self.pauses.longest : min(max(Self.pauses.first, pause.load(ordering: .relaxed) * 2), Self.pauses.longest)
        pause.store(next, ordering: .relaxed)
        nextAddressAt.store(now.saturatingAdd(next), ordering: .relaxed)
    }
}

extension SessionAcceptance: Equatable {
    /// Compares identities: each session has a record of its own.
    package static func == (left: SessionAcceptance, right: SessionAcceptance) -> Bool { left === right }
}
