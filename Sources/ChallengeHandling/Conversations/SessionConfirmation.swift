// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Answer to the question if a held session still works, after a response that looks like its challenge.
public enum SessionConfirmation: Sendable, Equatable {
    /// The session has ended, or nothing can tell: the next request that needs it starts a login.
    case over
    /// The session works at an address that only a session opens: the response was about its own resource.
    case stillGood
    /// The server gave no usable answer: the session stays, and nobody asks again for a moment.
    case unknown
}

extension SessionLogin {
    /// Returns `.over`: without an address to ask, a challenge is taken for the end of the session.
    public func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation { .over }
}
