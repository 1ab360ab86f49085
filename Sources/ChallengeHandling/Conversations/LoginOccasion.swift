// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What led to a login.
public struct LoginOccasion: Sendable {
    /// The scope to ask for.
    public var scope: Scope
    /// The response that asked for it; `nil` ahead of any challenge: at the start, for a renewal, before a body that
    /// could not be sent again.
    public var challenge: ExaminedResponse?

    /// An occasion.
    public init(scope: Scope = .empty, challenge: ExaminedResponse? = nil) {
        self.scope = scope
        self.challenge = challenge
    }
}
