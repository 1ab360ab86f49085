// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl

/// The connections of one `ConnectionGroup` to one upstream on one worker.
final class BoundPool {
    /// The idle HTTP/1.1 connections.
    let idleStreams: IdleStreams<HTTP1Stream>
    private var transfers: TransferPool?

    init(idleStreams: IdleStreams<HTTP1Stream>) { self.idleStreams = idleStreams }

    /// Returns the libcurl streams, which `make` creates at the first use.
    func transfers(_ make: () throws(CurlError) -> TransferPool) throws(CurlError) -> TransferPool {
        if let transfers { return transfers }
        let made = try make()
        transfers = made
        return made
    }

    /// Closes the connections: idle ones now, busy ones after their requests.
    func end() {
        idleStreams.close()
        transfers?.end()
        transfers = nil
    }
}

/// The connections to one upstream that servers may bind to sessions, by group.
struct BoundPools {
    private var pools: [ConnectionGroup: BoundPool] = [:]
    private var hasEnded = false

    /// Returns the pool of `group`, which `make` creates at the first use; `nil` after the end.
    ///
    /// `gate` and `now` tell which other groups have ended: a renewed session has a new group.
    mutating func pool(
        of group: ConnectionGroup, by gate: SharedAttemptGate, now: () -> Int64, _ make: () -> BoundPool
    ) -> BoundPool? {
        if let known = pools[group] { return known }
        guard !hasEnded else { return nil }
        endOutdated(by: gate, now: now())
        let made = make()
        pools[group] = made
        return made
    }

    /// Closes the connections of sessions that have ended. `now` in milliseconds since 1970.
    mutating func endOutdated(by gate: SharedAttemptGate, now: Int64) {
        for (group, pool) in pools where group.hasEnded(by: gate, now: now) {
            pools[group] = nil
            pool.end()
        }
    }

    /// Closes all connections, for good.
    mutating func end() {
        hasEnded = true
        for pool in pools.values { pool.end() }
        pools = [:]
    }
}
