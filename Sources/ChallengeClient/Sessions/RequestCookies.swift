// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Secrets

/// The cookies of the sessions that one request uses.
package struct RequestCookies {
    let sessions: [SessionCookieView]
    /// Injected `Cookie` fields.
    var injected: [Secret] = []
    let url: WebURL
    let now: Int64

    /// One `Cookie` field's value: what a caller sent in `lines`, without what the sessions send of the same names, then theirs
    /// (RFC 6265 §5.4: no more than one such field). `nil` where nothing goes.
    package func merged(with lines: [[UInt8]]) -> [UInt8]? {
        var lines = lines + injected.map { $0.revealBytes() }
        var merged: [UInt8]? = injected.isEmpty ? nil : Self.joined(lines)
        for session in sessions {
            merged = session.merged(with: lines, for: url, now: now)
            lines = merged.map { [$0] } ?? []
        }
        return merged
    }

    /// One field's value of several lines, in their order.
    package static func joined(_ lines: [[UInt8]]) -> [UInt8] {
        Array(lines.filter { !$0.isEmpty }.joined(separator: "; ".utf8))
    }
}
