// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeClient
internal import ChallengeHandling

/// States of the configured logins, from their sessions and from the closed latches. A value.
///
/// A latch may have closed before a restart, or in another process, so that no login of this process has failed yet. Its login
/// counts as failing nevertheless.
struct LoginStates {
    /// The states, in the order of the configuration.
    private(set) var all: [HealthReport.Login] = []

    /// Combines `sessions` with `latches`, the closed latches of present and of unknown values.
    init(of upstreams: [UpstreamPlan], sessions: [SessionKey: SessionState], latches: [ClosedLatch]) {
        var reported: Set<String> = []
        for upstream in upstreams {
            // A login at several locations, or for several users, is reported once.
            for login in upstream.logins.all
            where login.refusal == nil && reported.insert("\(upstream.name) \(login.key)").inserted {
                // Resources may have demanded further scopes of this login.
                let keys = sessions.keys.filter(login.key.isSibling).sorted { $0.scope < $1.scope }
                var states = (keys.isEmpty ? [login.key] : keys).map { ($0, sessions[$0] ?? .cold) }
                for latch in latches where login.isStopped(by: latch) { login.add(latch, to: &states) }
                all += states.map { key, state in
                    HealthReport.Login(
                        upstream: upstream.name, challenge: login.name, credential: key.credential, scope: key.scope,
                        asks: login.asks, sessionState: state)
                }
            }
        }
    }
}

extension Authenticator {
    /// Returns true if the next login would end at this latch.
    fileprivate func isStopped(by latch: ClosedLatch) -> Bool {
        guard latch.challenge == name || asks.contains(latch.challenge) else { return false }
        guard let key = latch.key else { return true }
        return credentials.contains(key.credential) && origins.union([self.key.origin]).contains(key.origin)
    }

    /// Adds a closed latch to the states of this login. A held session continues to be used.
    fileprivate func add(_ latch: ClosedLatch, to states: inout [(SessionKey, SessionState)]) {
        let failure = latch.refusal.failure
        guard let check = checks.first(where: { $0.name == latch.challenge }) else {
            for index in states.indices { states[index].1 = states[index].1.stopped(by: failure) }
            return
        }
        // Other scopes do not demand this check.
        guard !states.contains(where: { $0.1.failure?.challenge == latch.challenge }) else { return }
        var key = key
        key.scope = defaultScope.union(Scope([check.check])).description
        if let index = states.firstIndex(where: { $0.0 == key }) {
            states[index].1 = states[index].1.stopped(by: failure)
        } else {
            states.append((key, .failing(failure)))
        }
    }
}

extension SessionState {
    /// Returns the state of a login whose next attempt ends with `failure`, because of a closed latch.
    fileprivate func stopped(by failure: LoginFailure) -> SessionState {
        switch self {
        case .cold: .failing(failure)
        case .loggingIn(let waiters, nil): .loggingIn(waiters: waiters, after: failure)
        case .failing, .held, .loggingIn: self
        }
    }
}
