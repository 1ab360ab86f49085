// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling

/// A report of a login's end, resent until the session store has answered.
struct PendingReport: Sendable {
    enum Content: Sendable {
        case failure([UInt8], pause: Duration, longestPause: Duration, latches: [SharedLatch])
        /// A session that was established without a lease.
        case offer(after: UInt64, [UInt8], endsAt: Int64)
        /// The lease is released; nothing has failed.
        case release
        /// A session that was established under the lease.
        case session([UInt8], endsAt: Int64)
    }

    let token: LeaseToken
    let generation: UInt64
    var content: Content
    /// Time of the next try.
    var dueAt: Int64
    var tries = 0

    var isOffer: Bool { if case .offer = content { true } else { false } }

    /// Returns true if the reported session has ended.
    func isExpired(at now: Int64) -> Bool {
        switch content {
        case .offer(_, _, let endsAt), .session(_, let endsAt): endsAt <= now
        case .failure, .release: false
        }
    }

    func request(at now: Int64) -> StoreRequest {
        switch content {
        case .failure(let bytes, let pause, let longestPause, let latches):
            .fail(
                token: token, generation: generation, failure: bytes, pause: pause, longestPause: longestPause,
                latches: latches)
        case .offer(let after, let session, let endsAt):
            .offer(after: after, session: session, lifetime: .milliseconds(endsAt &- now))
        case .release:
            .fail(token: token, generation: generation, failure: [], pause: .zero, longestPause: .zero, latches: [])
        case .session(let session, let endsAt):
            .publish(token: token, generation: generation, session: session, lifetime: .milliseconds(endsAt &- now))
        }
    }

    /// Returns true if `request` carries this report.
    func matches(_ request: StoreRequest) -> Bool {
        switch (content, request) {
        case (.session, .publish): true
        case (.failure, .fail(_, _, _, let pause, _, let latches)): pause > .zero || !latches.isEmpty
        case (.release, .fail(_, _, _, let pause, _, let latches)): pause == .zero && latches.isEmpty
        default: false
        }
    }
}

/// The reports that the session store has not confirmed, oldest first.
struct PendingReports: Sendable {
    /// A node runs one login at a time, and an unreported lease expires by itself.
    private static let limit = 4

    private var entries: [PendingReport] = []

    var isEmpty: Bool { entries.isEmpty }
    var hasOffer: Bool { offerIndex != nil }
    var nextDueAt: Int64? { entries.map(\.dueAt).min() }
    var offerIndex: Int? { entries.firstIndex(where: \.isOffer) }

    func index(of request: StoreRequest, _ token: LeaseToken) -> Int? {
        entries.firstIndex { $0.token == token && $0.matches(request) }
    }

    func nextRequest(at now: Int64) -> StoreRequest? {
        entries.first { $0.dueAt <= now }?.request(at: now)
    }

    mutating func enqueue(_ report: PendingReport) {
        entries.append(report)
        if entries.count > Self.limit { entries.removeFirst() }
    }

    mutating func remove(at index: Int) { entries.remove(at: index) }

    mutating func removeOffers() { entries.removeAll(where: \.isOffer) }

    mutating func removeExpired(at now: Int64) { entries.removeAll { $0.isExpired(at: now) } }

    /// Withdraws sessions that turned out to be unusable; their leases are still released.
    mutating func withdrawSessions(upTo generation: UInt64, now: Int64) {
        removeOffers()
        for index in entries.indices where entries[index].generation <= generation {
            if case .session = entries[index].content {
                entries[index].content = .release
                entries[index].dueAt = now
            }
        }
    }

    /// Doubles the pause before the next try, up to `LeaseTimes.alone`.
    mutating func postpone(at index: Int, _ inputs: LeaseInputs, _ times: LeaseTimes) {
        let tries = min(entries[index].tries, 10)
        let pause = min(times.retry.milliseconds << Int64(tries), max(times.alone.milliseconds, 1))
        entries[index].tries = tries + 1
        entries[index].dueAt = inputs.now &+ pause / 2 &+ inputs.randomShare(of: pause / 2) &+ 1
    }

    /// Makes all reports due after a reconnection. Offers come randomly, as every node may have one.
    mutating func resetBackoff(_ inputs: LeaseInputs, _ times: LeaseTimes) {
        for index in entries.indices {
            entries[index].tries = 0
            entries[index].dueAt =
                inputs.now &+ (entries[index].isOffer ? inputs.randomDelay(within: times.spread) : 0)
        }
    }
}
