// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// Session in the session table.
public struct HeldSession: Sendable, Equatable {
    /// Established session.
    public internal(set) var session: Session
    /// Number that grows with every session established in this process; never reused.
    public let generation: UInt64
    /// Time of the login, in ms since 1970.
    public let establishedAt: Int64
    /// Start of the renewal in ms since 1970; nil if no expiry is known.
    ///
    /// Before the expiry by 30 s or a fifth of the lifetime, whichever is smaller, less a random part of up to a
    /// quarter of that. So sessions established together are not renewed together.
    public let renewAt: Int64?
    /// Number of sessions that this one continues without a gap.
    public let renewals: Int
    /// True if an earlier process established the session and handed it over.
    public let isTakenOver: Bool
    /// Record of its acceptances.
    package let acceptance = SessionAcceptance()

    init(
        _ session: Session, generation: UInt64, establishedAt: Int64, isTakenOver: Bool = false, renewals: Int = 0,
        chance: Double = 0
    ) {
        self.renewals = renewals
        self.session = session
        self.isTakenOver = isTakenOver
        self.generation = generation
        self.establishedAt = establishedAt
        let end = session.isRenewedAhead ? session.expiresAt : nil
        renewAt = end.map { end in
            let lead = min(30_000, max(0, end.saturatingSubtract(establishedAt)) / 5)
            return end.saturatingSubtract(lead) + Int64(Double(lead / 4) * min(max(chance, 0), 1))
        }
    }

    /// `User-Agent` that all requests with the session carry, because the server binds its cookies to it; nil if there is none.
    package var boundUserAgent: String? {
        guard session.cookies != nil else { return nil }
        return session.fields.first { $0.name == .userAgent }?.value.revealText()
    }

    /// Returns true if the session has expired at `now`, in ms since 1970.
    public func isExpired(at now: Int64) -> Bool {
        session.expiresAt.map { now >= $0 } ?? false
    }
}

/// State of a session key.
public enum SessionState: Sendable, Equatable {
    /// No session: never requested, or dropped.
    case cold
    /// The last login failed.
    case failing(LoginFailure)
    /// A session is held.
    case held(HeldSession)
    /// A login is running. `after` is the failure of the last one, unless a login has succeeded since.
    case loggingIn(waiters: Int, after: LoginFailure? = nil)
}

extension SessionState {
    /// Failure of the last login, also while another one runs; nil if none is known.
    package var failure: LoginFailure? {
        switch self {
        case .cold, .held: nil
        case .failing(let failure): failure
        case .loggingIn(_, let failure): failure
        }
    }
}
