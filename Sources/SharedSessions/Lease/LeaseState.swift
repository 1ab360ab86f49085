// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling

extension LeaseMachine {
    /// State of the request for a session.
    enum State: Sendable {
        /// No session is requested. Legal next: acquiring.
        case idle
        /// The lease is being requested. `isFinal`: for the last time before this node logs in alone. Legal next: all.
        case acquiring(SessionRequest, isFinal: Bool)
        /// Another node holds the lease, or a reply is missing. Legal next: idle, acquiring, delaying.
        case waiting(SessionRequest, until: Int64)
        /// The session store is unreachable. Legal next: idle, acquiring.
        case delaying(SessionRequest, until: Int64)
        /// The lease is granted, and the driver reads the latches. Legal next: idle, waiting, delaying, loggingIn.
        case readingLatches(SessionRequest, Lease)
        /// The login runs; without a lease, this node logs in alone. Legal next: idle, when the login ends.
        case loggingIn(SessionRequest, Lease?, since: Int64)
    }

    /// A session later than `after`, as requested by this node's logins.
    struct SessionRequest: Sendable {
        var after: UInt64
        let token: LeaseToken
        var isRenewal: Bool
        /// Number of consecutive lease requests without a reply.
        var unanswered = 0
    }

    /// The right to log in.
    struct Lease: Sendable {
        let generation: UInt64
        /// End of the lease, counted from the moment of the request.
        private(set) var endsAt: Int64 = 0
        /// Time of the next extension; `nil`: the lease is not extended.
        var extendAt: Int64?

        init(generation: UInt64, requestedAt: Int64, lifetime: Duration) {
            self.generation = generation
            extend(requestedAt: requestedAt, lifetime: lifetime)
        }

        mutating func extend(requestedAt: Int64, lifetime: Duration) {
            endsAt = requestedAt &+ lifetime.milliseconds
            extendAt = requestedAt &+ lifetime.milliseconds / 3
        }
    }
}

extension LeaseMachine.State {
    var request: LeaseMachine.SessionRequest? {
        switch self {
        case .idle: nil
        case .acquiring(let request, _), .waiting(let request, _), .delaying(let request, _),
            .readingLatches(let request, _), .loggingIn(let request, _, _):
            request
        }
    }

    /// Time of the next request for the lease.
    var retryAt: Int64? {
        switch self {
        case .waiting(_, let until), .delaying(_, let until): until
        case .acquiring, .idle, .loggingIn, .readingLatches: nil
        }
    }

    /// Time of the next extension of the lease.
    var extendAt: Int64? {
        if case .loggingIn(_, let lease, _) = self { lease?.extendAt } else { nil }
    }

    mutating func replaceRequest(_ request: LeaseMachine.SessionRequest) {
        switch self {
        case .idle: break
        case .acquiring(_, let isFinal): self = .acquiring(request, isFinal: isFinal)
        case .waiting(_, let until): self = .waiting(request, until: until)
        case .delaying(_, let until): self = .delaying(request, until: until)
        case .readingLatches(_, let lease): self = .readingLatches(request, lease)
        case .loggingIn(_, let lease, let since): self = .loggingIn(request, lease, since: since)
        }
    }
}
