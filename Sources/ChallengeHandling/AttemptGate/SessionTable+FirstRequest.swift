// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Knowledge about a server that may ask for a login, while no session is held.
///
/// Servers and log watchers count refusals, and lock addresses: of many requests at once, one goes ahead (CONTRIBUTING, rule 1).
enum FirstRequest<Waiter: Sendable & Equatable>: Sendable {
    /// Nothing is known.
    case unknown
    /// A request is under way. Others wait for its response head until that time, in ms since 1970.
    case underWay(Waiter, until: Int64)
    /// The server asked for a login. Other requests wait for it until that time.
    case asked(until: Int64)
    /// The server answered without a login.
    case open
}

/// Action of a request that needs no session as far as is known.
package enum FirstRequestAnswer: Sendable, Equatable {
    /// Go ahead, and report to `endFirstRequest`.
    case lead
    /// Wait among the waiters of the login, at most for that time in ms.
    case wait(Int64)
    /// Go. `isLasting`: so do all others, until the sessions change.
    case go(isLasting: Bool)
}

/// What the first request has shown.
package enum FirstRequestOutcome: Sendable, Equatable {
    case asked, open, unknown
}

extension SessionTable {
    /// Longest time in ms for which a request waits for another one.
    private static var firstRequestTime: Int64 { 1000 }

    /// Begins a request that has no session of `key`, at `now` (ms since 1970).
    package mutating func beginFirstRequest(_ key: SessionKey, waiter: Waiter, now: Int64) -> FirstRequestAnswer {
        if entries[key] == nil { evictIdleKeys(now: now) }
        var entry = entries[key] ?? SessionEntry()
        guard entry.held?.isExpired(at: now) ?? true, entry.unverified?.isExpired(at: now) ?? true,
            entry.trials.isEmpty
        else { return .go(isLasting: false) }
        guard entry.backOff.failure == nil else { return .go(isLasting: true) }
        defer { entries[key] = entry }
        switch entry.firstRequest {
        case .open: return .go(isLasting: true)
        case .underWay(_, let until), .asked(let until):
            // More is left if the clock was set back.
            let left = until.saturatingSubtract(now)
            if left > 0, left <= Self.firstRequestTime {
                guard waiterCount < limits.waiters else { return .go(isLasting: false) }
                waiterCount += 1
                entry.waiters.append((waiter, nil))
                return .wait(left)
            }
            if case .underWay = entry.firstRequest, left <= 0 { return .go(isLasting: false) }
            if entry.isLoggingIn { return .go(isLasting: false) }
        case .unknown where entry.isLoggingIn: return .go(isLasting: false)
        case .unknown: break
        }
        entry.firstRequest = .underWay(waiter, until: now.saturatingAdd(Self.firstRequestTime))
        return .lead
    }

    /// Ends the request that went ahead, and returns the waiters to notify. Those for a login that it leads to go on waiting.
    package mutating func endFirstRequest(
        _ key: SessionKey, _ outcome: FirstRequestOutcome, waiter: Waiter
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        guard case .underWay(waiter, let until)? = entries[key]?.firstRequest else { return [] }
        switch outcome {
        case .asked:
            entries[key]?.firstRequest = .asked(until: until)
            return []
        case .open: entries[key]?.firstRequest = .open
        case .unknown: entries[key]?.firstRequest = .unknown
        }
        guard entries[key]?.isLoggingIn == false else { return [] }
        return dequeueWaiters(of: key, with: .askAgain)
    }
}
