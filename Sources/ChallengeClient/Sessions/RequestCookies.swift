// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import HTTPWire
internal import Secrets

/// The cookies of the sessions that one request uses.
package struct RequestCookies {
    /// Those of the first session, and of the others: there are hardly ever any.
    private let first: CookieLine?
    private let others: [CookieLine]
    /// Injected `Cookie` fields.
    private let injected: [Secret]

    /// What `sessions` send to `target` at `origin`, and `injected` fields before it. `now` in milliseconds since 1970.
    init(
        of sessions: [SessionCookieView], injected: [Secret], to origin: Origin, target: Span<UInt8>, now: Int64
    ) {
        var end = 0
        while end < target.count, target[end] != UInt8(ascii: "?") { end += 1 }
        let path = target.extracting(0..<end)
        self.injected = injected
        first = sessions.first?.line(to: origin, path: path, now: now)
        others = sessions.count < 2 ? [] : sessions.dropFirst().map { $0.line(to: origin, path: path, now: now) }
    }

    /// Appends the one `Cookie` field of a request whose caller sent `lines`, if it has any.
    package func write(mergedWith lines: [[UInt8]], to fields: FieldSink) {
        if lines.isEmpty, injected.isEmpty, others.isEmpty {
            // As it was made for all such requests.
            guard let field = first?.field else { return }
            return field.withBytes { fields.append(name: "Cookie", value: $0) }
        }
        if let merged = merged(with: lines) { fields.append(name: "Cookie", value: merged.span) }
    }

    /// One `Cookie` field's value: what a caller sent in `lines`, without what the sessions send of the same names, then theirs
    /// (RFC 6265 §5.4: no more than one such field). `nil` where nothing goes.
    package func merged(with lines: [[UInt8]]) -> [UInt8]? {
        var lines = lines + injected.map { $0.revealBytes() }
        var merged: [UInt8]? = injected.isEmpty ? nil : Self.joined(lines)
        if let first { merge(first) }
        for line in others { merge(line) }
        return merged

        func merge(_ line: CookieLine) {
            merged = line.merged(with: lines)
            lines = merged.map { [$0] } ?? []
        }
    }

    /// One field's value of several lines, in their order.
    package static func joined(_ lines: [[UInt8]]) -> [UInt8] {
        Array(lines.filter { !$0.isEmpty }.joined(separator: "; ".utf8))
    }
}
