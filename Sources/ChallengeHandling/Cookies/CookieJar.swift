// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// The cookies of one login: parsed, kept and sent as RFC 6265 section 5 says. A value without a clock.
///
/// There is no list of public suffixes: a `Domain` of one label (`com`) is never honoured, any other parent of the host
/// is. A jar belongs to one server's session, so that is all it could be told wrongly by.
public struct CookieJar: Sendable, Equatable {
    /// How many cookies are kept, at most 64; beyond, the oldest goes.
    public static let limit = 64
    /// How many bytes name and value of one cookie may have together.
    public static let sizeLimit = 4096

    // In the order of their creation.
    var cookies: [Cookie] = []

    /// An empty jar.
    public init() {}

    /// Takes one `Set-Cookie` value that came from `url` at `now` (milliseconds since 1970; RFC 6265 sections 5.2, 5.3).
    /// One that has expired removes the cookie. `false`: refused, and nothing changed.
    @discardableResult
    public mutating func store(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        guard let line = SetCookie(setCookie, now: now), let cookie = Cookie(line, from: url) else { return false }
        // What came over TLS is not overwritten, nor shadowed, by what came without (RFC 6265bis section 5.7, step 16).
        if !cookie.isSecure, !Cookie.isTrustworthy(url.origin), cookies.contains(where: { $0.isShadowed(by: cookie) }) {
            return false
        }
        cookies.removeAll { $0.hasEnded(at: now) }
        let old = cookies.firstIndex { $0.isSame(as: cookie) }
        if cookie.hasEnded(at: now) {
            if let old { cookies.remove(at: old) }
        } else if let old {
            cookies[old] = cookie
        } else {
            if cookies.count >= Self.limit { cookies.removeFirst() }
            cookies.append(cookie)
        }
        return true
    }

    /// Removes all cookies of that name.
    public mutating func remove(name: String) { cookies.removeAll { $0.name == name } }

    /// The value of `Cookie` in a request to `url` at `now`: `name=value; name=value`, the longest path first, then the
    /// oldest (RFC 6265 section 5.4). `nil` where none goes there.
    public func header(for url: WebURL, now: Int64) -> Secret? {
        line(of: choice(for: url, now: now)).field
    }

    /// The names of all cookies.
    public var names: Set<String> { Set(cookies.map(\.name)) }

    /// Whether there is a cookie of that name.
    public func contains(name: String) -> Bool { cookies.contains { $0.name == name } }

    /// Whether there is none.
    public var isEmpty: Bool { cookies.isEmpty }

    /// Returns whether it holds a cookie, or a value of one, that `earlier` does not.
    func hasMore(than earlier: CookieJar) -> Bool { cookies.contains { !earlier.cookies.contains($0) } }

    /// Earliest end of a cookie that says when, in milliseconds since 1970; `nil` if none does. Cookies that callers get as well
    /// do not count: the session is good without them.
    public var expiresAt: Int64? { cookies.lazy.filter { !$0.reachesCallers }.compactMap(\.expiresAt).min() }
}
