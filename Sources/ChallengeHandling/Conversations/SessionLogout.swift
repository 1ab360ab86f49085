// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Ends a session at the server that it was won from, so that nobody can use what was won any more.
public protocol SessionLogout: Sendable {
    /// Says to the server that the session is over. Throws where the server did not take note of it; the session is forgotten here all
    /// the same.
    func end(_ session: Session, _ conversation: Conversation) async throws(LoginFailure)
    /// Whether one logout ends the login's sessions of all scopes.
    var endsAllScopes: Bool { get }
}

extension SessionLogout {
    /// Each has its own as a rule.
    public var endsAllScopes: Bool { false }
}
