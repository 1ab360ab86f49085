// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// Told of logins as they happen: for the log, the audit record, metrics and the demo. Called on a worker's thread;
/// must not block.
package protocol LoginObserver: Sendable {
    /// A login begins. Until it ends there is no other of that key.
    func loginBegan(_ key: SessionKey, _ cause: LoginCause)
    /// A step of it, redacted.
    func loginStepped(_ key: SessionKey, _ step: ConversationStep)
    /// It is over, after `duration`. One that never began is the refusal of a session outside of a login.
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration)
    /// The server has accepted a session that was unproven when its login ended; told once per login.
    func sessionAccepted(_ key: SessionKey)
    /// A session was ended at its server, or was not for that reason.
    func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?)
    /// A session that another host has won was taken up here.
    func sessionShared(_ key: SessionKey)
}

extension LoginObserver {
    /// Nobody cares.
    package func sessionAccepted(_ key: SessionKey) {}
    /// Nobody cares.
    package func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) {}
    /// Nobody cares.
    package func sessionShared(_ key: SessionKey) {}
}
