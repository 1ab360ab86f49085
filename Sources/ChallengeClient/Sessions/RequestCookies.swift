// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Secrets

/// The cookies of the sessions that one request uses.
package struct RequestCookies {
    let sessions: [SessionCookies]
    /// Injected `Cookie` fields.
    var injected: [Secret] = []
    let url: WebURL
    let now: Int64

    /// One `Cookie` field's value: what a caller sent in `lines`, without what the sessions have of the same names, then theirs
    /// (RFC 6265 §5.4: no more than one such field). `nil` where nothing goes.
    package func merged(with lines: [String]) -> [UInt8]? {
        var lines = lines + injected.map { $0.revealText() }
        var merged: [UInt8]? = injected.isEmpty ? nil : Array(lines.joined(separator: "; ").utf8)
        for session in sessions {
            merged = session.merged(with: lines, for: url, now: now)
            lines = merged.map { [String(decoding: $0, as: UTF8.self)] } ?? []
        }
        return merged
    }
}
