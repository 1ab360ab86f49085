// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What was counted of the exchanges with one upstream.
package struct UpstreamReading: Sendable, Equatable {
    /// The status codes that are told apart; any other counts as `otherStatus`.
    package static let knownStatuses = 100..<600
    /// What others count as.
    package static let otherStatus = 0

    /// The upstream's name.
    package let name: String
    /// How many exchanges ended with a response of the upstream, by its status less 100; the last is for other statuses.
    private var statuses = [UInt64](repeating: 0, count: knownStatuses.count + 1)
    /// How long exchanges took, from their head to the end of their response; those with a local reply too, not those that
    /// were cut off.
    package internal(set) var whole = LatencyHistogram()
    /// How long of that was ours: until the request was handed to its transfer, and from the last of the response until that
    /// was written. Neither the upstream, nor a login, nor a slow caller is in it.
    package internal(set) var own = LatencyHistogram()
    /// How many ended without a whole response because the caller went away, or sent or took nothing for too long.
    package internal(set) var lostCallers: UInt64 = 0
    /// How many responses broke off in their middle.
    package internal(set) var brokenResponses: UInt64 = 0
    /// How many challenges were met, by the challenge's name and what came of them.
    package internal(set) var challenges: [ChallengeCount: UInt64] = [:]

    /// Nothing counted yet.
    package init(name: String) { self.name = name }

    /// Responses by status, those that were seen; `otherStatus` where that is none of `knownStatuses`.
    package var responses: [(status: Int, count: UInt64)] {
        statuses.indices.compactMap { index in
            guard statuses[index] > 0 else { return nil }
            let isKnown = index < Self.knownStatuses.count
            return (isKnown ? Self.knownStatuses.lowerBound + index : Self.otherStatus, statuses[index])
        }
    }

    /// Adds what another worker has counted.
    package mutating func add(_ other: UpstreamReading) {
        for index in statuses.indices { statuses[index] &+= other.statuses[index] }
        whole.add(other.whole)
        own.add(other.own)
        lostCallers &+= other.lostCallers
        brokenResponses &+= other.brokenResponses
        challenges.merge(other.challenges) { $0 &+ $1 }
    }

    mutating func count(status: Int) {
        let isKnown = Self.knownStatuses.contains(status)
        statuses[isKnown ? status - Self.knownStatuses.lowerBound : Self.knownStatuses.count] &+= 1
    }
}

/// A challenge and what came of it.
package struct ChallengeCount: Sendable, Hashable {
    /// What came of it.
    package enum Outcome: String, Sendable, CaseIterable {
        /// A session was there or was won, and the request was sent again with it.
        case answered
        /// No session could be had, or the exchange was over before: a local reply, or nobody was left to be told.
        case failed
        /// It went to the caller, for no further login would change it.
        case passed
        /// The request's body was gone, and could not be sent again.
        case notReplayable = "body-not-replayable"
    }

    /// The name of the challenge; that of the upstream for its MobileFirst server.
    package let challenge: String
    /// What came of it.
    package let outcome: Outcome

    /// A challenge with its outcome.
    package init(challenge: String, outcome: Outcome) {
        self.challenge = challenge
        self.outcome = outcome
    }
}
