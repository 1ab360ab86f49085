// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import HTTPWire
internal import Secrets

/// The cookies of the sessions that one request uses.
package struct RequestCookies {
    /// The lines of the first session, and of the rare others.
    private let first: CookieLine?
    private let others: [CookieLine]
    /// Injected `Cookie` fields.
    private let injected: [Secret]

    /// Creates the cookies of `sessions` for `target` at `origin`, and `injected` fields after them. `now` in
    /// milliseconds since 1970.
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

    /// Appends the one `Cookie` field of a request, merged with the caller's `lines`.
    package func write(mergedWith lines: [[UInt8]], to fields: FieldSink) {
        if lines.isEmpty, injected.isEmpty, others.isEmpty {
            // Line rendered once for all such requests.
            guard let field = first?.field else { return }
            return field.withBytes { fields.append(name: "Cookie", value: $0) }
        }
        if let merged = merged(with: lines) { fields.append(name: "Cookie", value: merged.span) }
    }

    /// Returns one `Cookie` field's value: the sessions' cookies, injected ones, and the caller's `lines`, or `nil` if empty.
    ///
    /// Cookies of the caller are left out if a session has the same name. A request has at most one such field (RFC
    /// 6265 §5.4).
    package func merged(with lines: [[UInt8]]) -> [UInt8]? {
        guard first != nil || !others.isEmpty || !injected.isEmpty else { return nil }
        var pairs = CookiePairs()
        if let first { pairs.append(first) }
        for line in others { pairs.append(line) }
        pairs.append(injected: injected.map { $0.revealBytes() })
        pairs.append(callers: lines)
        return pairs.text
    }

    /// Returns one field's value of several lines, in order.
    package static func joined(_ lines: [[UInt8]]) -> [UInt8] {
        Array(lines.filter { !$0.isEmpty }.joined(separator: "; ".utf8))
    }
}

/// The `Set-Cookie` lines of one response that belong to sessions, withheld from the caller.
package struct HeldCookies {
    /// The positions of their values in the head.
    private var starts: Set<Int> = []

    /// Creates an empty set.
    package init() {}

    /// True if there is no such line.
    var isEmpty: Bool { starts.isEmpty }

    /// Returns true if `line`, of the examined response, is withheld.
    package func contains(_ line: FieldLine) -> Bool {
        line.kind == .setCookie && !starts.isEmpty && starts.contains(line.value.start)
    }

    mutating func insert(_ line: FieldLine) { starts.insert(line.value.start) }
}

extension SessionFields {
    /// Updates the sessions of a request to `target` by its answer. Returns their cookies in the answer.
    func learn(
        from transfer: Transfer, of plan: UpstreamPlan, target: borrowing ByteQueue, now: Int64
    ) -> HeldCookies {
        if hasSigners {
            let target = target.text
            let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0, only: learnsFrom) }
            learn(status: head.status, fields: head.fields, target: target)
        }
        var held = HeldCookies()
        let fields = transfer.answer.fields
        guard hasCookies, fields.contains(where: { $0.kind == .setCookie }) else { return held }
        let url = plan.address(of: target)
        transfer.head.withSpan { bytes in
            for line in fields where line.kind == .setCookie {
                let value = bytes.copy(line.value)
                // No early exit: one line may be a cookie of two sessions at the same login.
                var isHeld = false
                for cookies in cookies where cookies.take(value, from: url, now: now) { isHeld = true }
                if isHeld { held.insert(line) }
            }
        }
        return held
    }

    func cookies(for target: borrowing ByteQueue, to origin: Origin, now: Int64) -> RequestCookies {
        target.withSpan { RequestCookies(of: cookies, injected: cookieFields, to: origin, target: $0, now: now) }
    }
}
