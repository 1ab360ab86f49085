// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// Counts logins as they end, and passes on what it is told. For logins, which are seldom, a lock does.
package final class LoginMeter: LoginObserver {
    private struct State {
        /// The logins under way, and whether each has told a step.
        var begun: [SessionKey: Bool] = [:]
        var unproven = UnprovenLogins()
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

    /// A meter in front of `next`.
    package init(next: any LoginObserver) { self.next = next }

    /// What was counted.
    package var reading: LoginReading {
        state.withLock { $0.reading }
    }

    /// A login begins.
    package func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        state.withLock { $0.begun[key] = false }
        next.loginBegan(key, cause)
    }

    /// A step of it.
    package func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        state.withLock { state in
            if state.begun[key] != nil { state.begun[key] = true }
        }
        next.loginStepped(key, step)
    }

    /// The server has accepted what a login made: only now it is won.
    package func sessionAccepted(_ key: SessionKey) {
        state.withLock { state in
            guard let login = state.unproven.take(key) else { return }
            state.add(key, login.cause, failure: nil, after: login.duration)
        }
        next.sessionAccepted(key)
    }

    /// It is over.
    package func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        count(key, result, cause, after: duration)
        next.loginEnded(key, result, cause, after: duration)
    }

    /// A session was ended at its server, or was not.
    package func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) {
        state.withLock { state in
            state.reading.logouts[LogoutCount(challenge: key.challenge, isDone: failure == nil), default: 0] &+= 1
        }
        next.logoutEnded(key, failure)
    }

    /// A session that another host has won was taken up here.
    package func sessionShared(_ key: SessionKey) { next.sessionShared(key) }

    private func count(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        state.withLock { state in
            let hasStepped = state.begun.removeValue(forKey: key)
            let unproven = state.unproven.take(key)
            switch result {
            case .failure(let failure):
                // One that never began is a session that the server has refused. Where it was accepted before, that is no login.
                guard hasStepped != nil || unproven != nil else { return }
                state.add(key, unproven?.cause ?? cause, failure: failure.code, after: unproven?.duration ?? duration)
            case .success(let session):
                switch LoginSuccess(session, isSilent: hasStepped != true) {
                case .won where hasStepped != nil: state.add(key, cause, failure: nil, after: duration)
                case .unproven: state.unproven.enter(key, cause, after: duration)
                case .notAsked, .ready, .won: break
                }
            }
        }
    }
}

/// What was counted of logins.
package struct LoginReading: Sendable {
    /// How many ended how.
    package var counts: [LoginCount: UInt64]
    /// How long they took, by challenge.
    package var durations: [String: LatencyHistogram]
    /// How many sessions were to be ended at their servers.
    package var logouts: [LogoutCount: UInt64] = [:]

    /// A reading.
    package init(counts: [LoginCount: UInt64] = [:], durations: [String: LatencyHistogram] = [:]) {
        self.counts = counts
        self.durations = durations
    }
}

/// Logouts that ended in the same way.
package struct LogoutCount: Sendable, Hashable {
    /// The challenge's name.
    package var challenge: String
    /// True if the server said that the session has ended.
    package var isDone: Bool
}

/// Logins that ended in the same way.
package struct LoginCount: Sendable, Hashable {
    /// The challenge's name; that of the upstream for its MobileFirst server.
    package var challenge: String
    /// True if a session that still served was to be replaced.
    package var isRenewal: Bool
    /// Why they failed; `nil`: the server accepted them.
    package var failure: LoginFailure.Code?

    /// A kind of login.
    package init(challenge: String, isRenewal: Bool, failure: LoginFailure.Code?) {
        self.challenge = challenge
        self.isRenewal = isRenewal
        self.failure = failure
    }
}

extension Duration {
    /// In nanoseconds; none where it is negative.
    fileprivate var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        let whole = UInt64(clamping: seconds).multipliedReportingOverflow(by: 1_000_000_000)
        return whole.overflow ? .max : whole.partialValue &+ UInt64(clamping: attoseconds / 1_000_000_000)
    }
}
