// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import Secrets

/// The cookies that one request carries, and their `Cookie` field (RFC 6265 §5.4).
package final class CookieLine: Sendable {
    /// The names and values, the longest path first, then the oldest. `nil` without cookies.
    package let field: Secret?
    let cookies: [Cookie]
    /// Whether a caller's own cookie of that name replaces each of the cookies: all of one name, or none.
    let givesWay: [Bool]

    init(_ cookies: [Cookie]) {
        self.cookies = cookies
        field = cookies.isEmpty ? nil : Self.text(of: cookies)
        givesWay = cookies.map { cookie in cookies.allSatisfy { $0.name != cookie.name || $0.reachesCallers } }
    }

    /// Merges the session's cookies with a caller's `lines` into one field. `nil` if nothing is left.
    ///
    /// The caller's cookies of the session's names are dropped, and those that could enclose another one: see `CookiePairs`.
    package func merged(with lines: [[UInt8]]) -> [UInt8]? {
        if lines.isEmpty { return field?.revealBytes() }
        var pairs = CookiePairs()
        pairs.append(self)
        pairs.append(callers: lines)
        return pairs.text
    }

    /// Returns the value of the first cookie of that name in the value of a `Cookie` field; nil without such a cookie.
    package static func value(of name: String, in line: [UInt8]) -> ArraySlice<UInt8>? {
        let wanted = Array(name.utf8)
        for pair in line.split(separator: UInt8(ascii: ";")) {
            let pair = pair.drop(while: \.isBlank)
            guard pair.count > wanted.count, pair.starts(with: wanted) else { continue }
            let rest = pair.dropFirst(wanted.count)
            guard rest.first == UInt8(ascii: "=") else { continue }
            return rest.dropFirst()
        }
        return nil
    }

    private static func text(of cookies: [Cookie]) -> Secret {
        var text = SecretBuilder(capacity: 256)
        for cookie in cookies {
            if text.count > 0 { text.append("; ") }
            text.append(cookie.namePrefix)
            text.append(cookie.value)
        }
        return text.finish()
    }
}

extension CookieJar {
    /// Returns the cookies that a request to `url` carries at `now`. The bits are their positions in the jar.
    func choice(for url: WebURL, now: Int64) -> UInt64 {
        choice(of: choice(for: url.origin), below: url.path.utf8.span, now: now)
    }

    /// Returns the cookies that some path of `origin` gets.
    func choice(for origin: Origin) -> UInt64 {
        var choice: UInt64 = 0
        for (index, cookie) in cookies.prefix(UInt64.bitWidth).enumerated() where cookie.goes(to: origin) {
            choice |= 1 << UInt64(index)
        }
        return choice
    }

    /// Returns the cookies of `candidates` that a request to `path` carries at `now`.
    func choice(of candidates: UInt64, below path: Span<UInt8>, now: Int64) -> UInt64 {
        var (left, choice) = (candidates, UInt64(0))
        while left != 0 {
            let index = left.trailingZeroBitCount
            let bit = left & (0 &- left)
            left ^= bit
            if !cookies[index].hasEnded(at: now), cookies[index].goes(below: path) { choice |= bit }
        }
        return choice
    }

    /// Returns the field of the chosen cookies.
    func line(of choice: UInt64) -> CookieLine {
        let chosen = cookies.enumerated().filter { index, _ in
            index < UInt64.bitWidth && choice & 1 << UInt64(index) != 0
        }
        let ordered = chosen.sorted { left, right in
            let lengths = (left.element.path.utf8.count, right.element.path.utf8.count)
            return lengths.0 == lengths.1 ? left.offset < right.offset : lengths.0 > lengths.1
        }
        return CookieLine(ordered.map(\.element))
    }

    /// Returns whether both jars make equal lines: all cookies are equal except for their expiry.
    func isSent(as other: CookieJar) -> Bool {
        cookies.elementsEqual(other.cookies) { ours, others in
            ours.isSame(as: others) && ours.value == others.value && ours.reachesCallers == others.reachesCallers
        }
    }
}
