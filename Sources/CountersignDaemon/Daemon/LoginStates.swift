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

    /// Combines the states of sessions with `latches`, the closed latches of present and of unknown values.
    ///
    /// `sessions` returns the states of a login's session in every scope. Each login is looked up alone, so that nothing is locked for
    /// long.
    init(
        of logins: [ReportedLogins.Entry], latches: [ClosedLatch],
        sessions: (SessionKey) -> [(key: SessionKey, state: SessionState)]
    ) {
        let numbers = Dictionary(grouping: latches.indices) { LatchName(latches[$0]) }
        for entry in logins {
            let login = entry.login
            // Resources may have demanded further scopes of this login.
            var states = sessions(login.key).sorted { $0.key.scope < $1.key.scope }.map { ($0.key, $0.state) }
            if states.isEmpty { states = [(login.key, .cold)] }
            if !latches.isEmpty {
                for number in LatchName.all(of: login).flatMap({ numbers[$0] ?? [] }).sorted()
                where login.isStopped(by: latches[number]) {
                    login.add(latches[number], to: &states)
                }
            }
            all += states.map { key, state in
                HealthReport.Login(
                    upstream: entry.upstream, challenge: login.name, credential: key.credential, scope: key.scope,
                    asks: login.asks, sessionState: state)
            }
        }
    }
}

extension Authenticator {
    /// Returns true if the next login would end at this latch.
    fileprivate func isStopped(by latch: ClosedLatch) -> Bool {
        guard latch.challenge == name || asks.contains(latch.challenge) else { return false }
        guard let key = latch.key else { return true }
        return credentials.contains(key.credential) && (self.key.origin == key.origin || origins.contains(key.origin))
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
