// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// `User-Agent` of the requests with a session.
///
/// Some servers end a session that comes under another one than the login had (CONTRIBUTING, rule 11).
enum SessionUserAgent: Sendable, Equatable {
    /// That of each caller. The login's is not tried before that time, in ms since 1970: it did not help.
    case callers(until: Int64)
    /// That of the login. The server may bind sessions to it, as one ended under a caller's.
    case suspected(String)
    /// That of the login: the server accepts sessions under it only.
    case bound(String)

    /// The one that sessions carry; nil for that of each caller.
    fileprivate var text: String? {
        switch self {
        case .callers: nil
        case .suspected(let text), .bound(let text): text
        }
    }
}

extension SessionTable {
    /// Pause between trials that did not help, in ms: a resource that refuses everybody costs a request now and then.
    private static var userAgentPause: Int64 { 600_000 }

    /// Returns true if a request that the session of `key` does not open may be sent under the login's `User-Agent`.
    package func mayTryUserAgent(of key: SessionKey, now: Int64) -> Bool {
        guard case .callers(let until)? = entries[key]?.userAgent else { return true }
        // The clock may have been set back.
        return now >= until || until.saturatingSubtract(now) > Self.userAgentPause
    }

    /// Has the sessions of `key` carry that `User-Agent`, from the next login on.
    package mutating func suspectUserAgent(_ text: String, of key: SessionKey) {
        guard let entry = entries[key], entry.userAgent != .bound(text) else { return }
        entries[key]?.userAgent = .suspected(text)
    }

    /// Has the sessions of `key` carry that `User-Agent` from now on. Returns true if that is new.
    package mutating func bindUserAgent(_ text: String, of key: SessionKey) -> Bool {
        guard let entry = entries[key], entry.userAgent != .bound(text) else { return false }
        entries[key]?.userAgent = .bound(text)
        entries[key]?.held?.session.carry(.bound(text))
        version &+= 1
        return true
    }

    /// Leaves the requests with sessions of `key` their callers' `User-Agent`: the login's was refused as well.
    package mutating func releaseUserAgent(of key: SessionKey, now: Int64) {
        guard let entry = entries[key] else { return }
        if case .bound = entry.userAgent { return }
        if case .suspected(let text) = entry.userAgent {
            entries[key]?.held?.session.fields.removeAll { $0.name == .userAgent && $0.value.revealText() == text }
        }
        entries[key]?.userAgent = .callers(until: now.saturatingAdd(Self.userAgentPause))
        version &+= 1
    }
}

extension Session {
    /// Adds the `User-Agent` that requests with the session need. One without cookies is not bound to any.
    fileprivate mutating func set(userAgent text: String) {
        fields.removeAll { $0.name == .userAgent }
        fields.append(InjectedField(name: .userAgent, value: Secret(text)))
    }

    mutating func carry(_ userAgent: SessionUserAgent) {
        if cookies != nil, let text = userAgent.text { set(userAgent: text) }
    }
}
