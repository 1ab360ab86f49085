// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A session with what the table knows about it.
public struct HeldSession: Sendable, Equatable {
    /// What was won.
    public let session: Session
    /// Rises with every session won in this process; never reused.
    public let generation: UInt64
    /// When it was won, in milliseconds since 1970.
    public let wonAt: Int64
    /// When renewal begins, in milliseconds since 1970: ahead of the end by the smaller of 30 s and a fifth of the
    /// life, less up to a quarter of that by chance, so that sessions that were won together are not renewed together;
    /// `nil` where no end is known.
    public let renewAt: Int64?
    /// How many sessions this one has taken the place of, one after the other, without a time between two of them.
    public let renewals: Int
    /// Whether an earlier process has won it and handed it over.
    public let isTakenOver: Bool

    init(
        _ session: Session, generation: UInt64, wonAt: Int64, isTakenOver: Bool = false, renewals: Int = 0,
        chance: Double = 0
    ) {
        self.renewals = renewals
        self.session = session
        self.isTakenOver = isTakenOver
        self.generation = generation
        self.wonAt = wonAt
        let end = session.isRenewedAhead ? session.expiresAt : nil
        renewAt = end.map { end in
            let lead = min(30_000, max(0, end.saturatingSubtract(wonAt)) / 5)
            return end.saturatingSubtract(lead) + Int64(Double(lead / 4) * min(max(chance, 0), 1))
        }
    }

    /// Whether it has ended at `now` (milliseconds since 1970).
    public func isExpired(at now: Int64) -> Bool {
        session.expiresAt.map { now >= $0 } ?? false
    }
}

/// How a session key stands.
public enum SessionStanding: Sendable, Equatable {
    /// Never asked for, or dropped.
    case cold
    /// The last login failed.
    case failing(LoginFailure)
    /// A session is held.
    case held(HeldSession)
    /// A login runs.
    case winning(waiters: Int)
}
