// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// What led to a login.
public struct LoginOccasion: Sendable {
    /// The scope to ask for.
    public var scope: Scope
    /// The response that asked for it; `nil` ahead of any challenge: at the start, for a renewal, before a body that
    /// could not be sent again.
    ///
    /// Of an unsafe request (RFC 9110 §9.2.1) its address has no query here, so that no login can carry that request out.
    public var challenge: ExaminedResponse?
    /// The address of the request that waits for the session, without its query; `nil` if no request waits.
    ///
    /// A login without a challenge may look there, by GET or HEAD, for what is asked for.
    public var target: WebURL?

    /// An occasion.
    public init(scope: Scope = .empty, challenge: ExaminedResponse? = nil, target: WebURL? = nil) {
        self.scope = scope
        self.challenge = challenge
        self.target = target?.withoutQuery
        if let challenge, challenge.method != .get, challenge.method != .head {
            self.challenge?.url = challenge.url.withoutQuery
        }
    }
}
