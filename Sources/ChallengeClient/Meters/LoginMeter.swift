// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeHandling
internal import Synchronization

/// Counts logins as they end, and passes all events on. Logins are rare, so that a lock is cheap enough.
package final class LoginMeter: LoginObserver {
    private struct State {
        /// The logins under way; true after the first step.
        var begun: [SessionKey: Bool] = [:]
        var unverified = UnverifiedLogins()
        var reading = LoginReading()

        mutating func add(
            _ key: SessionKey, _ cause: LoginCause, failure: LoginFailure.Code?, after duration: Duration
        ) {
            let count = LoginCount(challenge: key.challenge, isRenewal: cause.isRenewal, failure: failure)
            reading.counts[count, default: 0] &+= 1
            reading.durations[key.challenge, default: LatencyHistogram()].add(duration.nanoseconds)
        }
    }

    private let next: any LoginObserver
    private let state = Mutex(State())

    /// Creates a meter before `next`.
    package init(next: any LoginObserver) { self.next = next }

    /// The counts.
    package var reading: LoginReading {
        state.withLock { $0.reading }
    }

    /// Records the beginning of a login.
    package func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        state.withLock { $0.begun[key] = false }
        next.loginBegan(key, cause)
    }

    /// Records a step.
    package func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        state.withLock { state in
            if state.begun[key] != nil, step.kind == .exchange { state.begun[key] = true }
        }
        next.loginStepped(key, step)
    }

    /// Counts a login whose session the server has accepted: only now is it established.
    package func sessionAccepted(_ key: SessionKey) {
        state.withLock { state in
            guard let login = state.unverified.accept(key) else { return }
            state.add(key, login.cause, failure: nil, after: login.duration)
        }
        next.sessionAccepted(key)
    }

    /// Counts the end of a login.
    package func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        count(key, result, cause, after: duration)
        next.loginEnded(key, result, cause, after: duration)
    }

    /// Counts a logout.
    package func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) {
        state.withLock { state in
            state.reading.logouts[LogoutCount(challenge: key.challenge, isDone: failure == nil), default: 0] &+= 1
        }
        next.logoutEnded(key, failure)
    }

    /// Passes on that a session established by another node was adopted here.
    package func sessionShared(_ key: SessionKey) { next.sessionShared(key) }

    /// Passes on that an upstream's challenges were not understood.
    package func challengeUnread(_ text: String, by upstream: String) { next.challengeUnread(text, by: upstream) }

    /// Passes on that the server binds sessions to a `User-Agent`.
    package func sessionIsBound(_ key: SessionKey, to userAgent: String) { next.sessionIsBound(key, to: userAgent) }

    private func count(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        state.withLock { state in
            let hasStepped = state.begun.removeValue(forKey: key)
            switch result {
            case .failure(let failure):
                let unverified = state.unverified.fail(key)
                // A login that never began means a session refused by the server. If that session was accepted before,
                // the refusal does not count as a login.
                guard hasStepped != nil || unverified != nil else { return }
                state.add(
                    key, unverified?.cause ?? cause, failure: failure.code, after: unverified?.duration ?? duration)
            case .success(let session):
                state.unverified.remove(key)
                switch LoginSuccess(session, isSilent: hasStepped != true) {
                case .succeeded where hasStepped != nil: state.add(key, cause, failure: nil, after: duration)
                case .unverified: _ = state.unverified.add(key, session, cause, after: duration)
                case .notAsked, .ready, .succeeded: break
                }
            }
        }
    }
}

/// The counts of logins.
package struct LoginReading: Sendable {
    /// The number of logins by challenge and outcome.
    package var counts: [LoginCount: UInt64]
    /// The durations by challenge.
    package var durations: [String: LatencyHistogram]
    /// The number of logouts by challenge and outcome.
    package var logouts: [LogoutCount: UInt64] = [:]

    /// Creates a reading.
    package init(counts: [LoginCount: UInt64] = [:], durations: [String: LatencyHistogram] = [:]) {
        self.counts = counts
        self.durations = durations
    }
}

/// A challenge and an outcome of logouts.
package struct LogoutCount: Sendable, Hashable {
    /// The challenge's name.
    package var challenge: String
    /// True if the server has confirmed the end of the session.
    package var isDone: Bool
}

/// A challenge and an outcome of logins.
package struct LoginCount: Sendable, Hashable {
    /// The challenge's name, or the upstream's name for its MobileFirst server.
    package var challenge: String
    /// True if a valid session was renewed.
    package var isRenewal: Bool
    /// The failure; `nil` if the server accepted the session.
    package var failure: LoginFailure.Code?

    /// Creates a kind of login.
    package init(challenge: String, isRenewal: Bool, failure: LoginFailure.Code?) {
        self.challenge = challenge
        self.isRenewal = isRenewal
        self.failure = failure
    }
}
