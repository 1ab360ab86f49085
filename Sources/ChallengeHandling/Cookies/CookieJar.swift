// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
public import Secrets

/// The cookies of one login, parsed, stored and sent by RFC 6265 §5. A value without a clock.
///
/// There is no list of public suffixes: a `Domain` of one label (`com`) is always refused, any other parent of the host
/// is allowed. A jar belongs to one server's session, so cookies of other servers are not at risk.
public struct CookieJar: Sendable, Equatable {
    /// The number of stored cookies; beyond it the oldest is dropped. At most 64.
    public static let limit = 64
    /// The size limit of a cookie's name and value together, in bytes.
    public static let sizeLimit = 4096

    // In the order of creation.
    var cookies: [Cookie] = []

    /// Creates an empty jar.
    public init() {}

    /// Stores the text of one `Set-Cookie` value, like `store(_:from:now:)` of its bytes.
    @discardableResult
    public mutating func store(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        store(Array(setCookie.utf8), from: url, now: now)
    }

    /// Stores one `Set-Cookie` value from `url` (RFC 6265bis §5.6, §5.7). `now` is in milliseconds since 1970. An expired
    /// one removes the cookie. Returns `false` if the line is refused and nothing changed.
    @discardableResult
    public mutating func store(_ setCookie: [UInt8], from url: WebURL, now: Int64) -> Bool {
        guard let line = SetCookie(setCookie, now: now), var cookie = Cookie(line, from: url, now: now) else {
            return false
        }
        // A cookie set over TLS is neither overwritten nor shadowed by one set without (RFC 6265bis §5.7, step 16).
        if !cookie.isSecure, !Cookie.isTrustworthy(url.origin), cookies.contains(where: { $0.isShadowed(by: cookie) }) {
            return false
        }
        cookies.removeAll { $0.hasEnded(at: now) }
        let old = cookies.firstIndex { $0.isSame(as: cookie) }
        if cookie.hasEnded(at: now) {
            if let old { cookies.remove(at: old) }
        } else if let old {
            cookie.createdAt = cookies[old].createdAt
            cookies[old] = cookie
        } else {
            if cookies.count >= Self.limit { cookies.removeFirst() }
            cookies.append(cookie)
        }
        return true
    }

    /// Removes all cookies of that name.
    public mutating func remove(name: String) { cookies.removeAll { $0.name == CookieName(name) } }

    /// Returns the value of `Cookie` in a request to `url` at `now`: `name=value; name=value`. The longest path comes
    /// first, then the oldest cookie (RFC 6265 §5.4). `nil` without a matching cookie.
    public func header(for url: WebURL, now: Int64) -> Secret? {
        line(of: choice(for: url, now: now)).field
    }

    /// Returns the value of the first cookie of that name in a request to `url` at `now`.
    func value(of name: String, for url: WebURL, now: Int64) -> Secret? {
        let found = cookies.filter { $0.name == CookieName(name) && !$0.hasEnded(at: now) && $0.goes(to: url) }
        let longest = found.map(\.path.utf8.count).max()
        return found.first { $0.path.utf8.count == longest }?.value
    }

    /// The names of all cookies.
    public var names: Set<String> { Set(cookies.map(\.name.text)) }

    /// Returns whether there is a cookie of that name.
    public func contains(name: String) -> Bool { cookies.contains { $0.name == CookieName(name) } }

    /// True if there are no cookies.
    public var isEmpty: Bool { cookies.isEmpty }

    /// Returns whether the jar has a cookie or a value that `earlier` lacks.
    func hasMore(than earlier: CookieJar) -> Bool { cookies.contains { !earlier.cookies.contains($0) } }

    /// Earliest expiry of a cookie, in milliseconds since 1970; `nil` without an expiry. Cookies shared with callers do
    /// not count: the session is valid without them.
    public var expiresAt: Int64? { cookies.lazy.filter { !$0.reachesCallers }.compactMap(\.expiresAt).min() }
}

extension CookieJar {
    /// Common names of double-submit tokens against request forgery. Pages read these cookies, so callers need them as
    /// well.
    public static let doubleSubmitNames: Set<String> = [
        "CSRF-TOKEN", "XSRF-TOKEN", "_csrf", "_xsrf", "csrf_token", "csrftoken",
    ]

    /// Shares the cookies of these names with callers. A response may set them, and a caller's own value replaces the
    /// stored one.
    mutating func pass(names: Set<String>) {
        for index in cookies.indices { cookies[index].reachesCallers = names.contains(cookies[index].name.text) }
    }

    /// True if a cookie belongs to the session alone.
    var hasOwn: Bool { cookies.contains { !$0.reachesCallers } }

    /// Applies a `Set-Cookie` of a response to a request with these cookies. A cookie of equal name, domain and path
    /// renews or removes the stored one (RFC 6265 §5.3, step 11); any other belongs to the caller. Returns whether the
    /// line must be withheld from the caller.
    mutating func renew(_ setCookie: [UInt8], from url: WebURL, now: Int64) -> Bool {
        let name = SetCookie.name(in: setCookie)
        let namesakes = cookies.indices.filter {
            !cookies[$0].reachesCallers && cookies[$0].name == name
        }
        guard !namesakes.isEmpty else { return false }
        // User agents ignore such a line, and its value may be the session's.
        guard let line = SetCookie(setCookie, now: now), let cookie = Cookie(line, from: url, now: now) else {
            return true
        }
        if let index = namesakes.first(where: { cookies[$0].isSame(as: cookie) }) {
            // A cookie set over TLS is not overwritten by one set without (RFC 6265bis §5.7, step 16).
            let isWeaker = cookies[index].isSecure && !cookie.isSecure && !Cookie.isTrustworthy(url.origin)
            // A removed cookie is stored as expired: its replacement a moment later belongs to the session as well.
            if !isWeaker { cookies[index] = cookie }
            return true
        }
        return namesakes.contains { index in
            // The session's value under another path is still the session's value. A line without a path, in response
            // to a request that carried the cookie, may be an inexact server's renewal. Both are withheld from callers.
            cookies[index].value == cookie.value || line.path == nil && cookies[index].goes(to: url)
        }
    }
}

/// One stored cookie (RFC 6265 §5.3).
struct Cookie: Sendable, Equatable {
    let name: CookieName
    let value: Secret
    /// The domain in lower case, without a leading dot.
    let domain: String
    /// True if the cookie is sent only to `domain` itself, not to hosts below it.
    let isHostOnly: Bool
    let path: String
    let isSecure: Bool
    let expiresAt: Int64?
    /// True if callers get the cookie as well, and their own value replaces it (`cookies: { pass: … }`).
    var reachesCallers = false
    /// The attribute `SameSite`, and the time of creation in milliseconds since 1970, which that depends on.
    ///
    /// Both concern the requests of a sign-on only, and are not part of a session that is handed over.
    private(set) var sameSite = SameSite.unset
    var createdAt = Int64.min

    /// Creates the cookie that `line` from `url` sets at `now`; `nil` if it is not allowed.
    init?(_ line: SetCookie, from url: WebURL, now: Int64) {
        let host = url.origin.host
        if let wanted = line.domain, wanted != host {
            // A cookie for a bare label would be sent to a whole top-level domain.
            guard wanted.contains("."), Self.matches(host: host, domain: wanted) else { return nil }
            domain = wanted
            isHostOnly = false
        } else {
            domain = host
            // `Domain=intranet` from `intranet` means this host; `Domain=www.example.com` includes the hosts below.
            isHostOnly = line.domain == nil || !host.contains(".")
        }
        guard !line.isSecure || Self.isTrustworthy(url.origin) else { return nil }
        path = line.path ?? Self.defaultPath(url.path)
        // Names with these prefixes have requirements (RFC 6265bis §4.1.3); a cookie that violates them is refused.
        // Without a name, the value could be read as one (RFC 6265bis §5.7, step 22).
        let prefix = line.name.isEmpty ? CookieName(line.value.revealBytes()) : line.name
        let isOfHost = prefix.hasPrefix(lowercased: "__host-")
        if line.name.isEmpty, isOfHost || prefix.hasPrefix(lowercased: "__secure-") { return nil }
        if prefix.hasPrefix(lowercased: "__secure-"), !line.isSecure { return nil }
        if isOfHost, !line.isSecure || line.domain != nil || path != "/" { return nil }
        name = line.name
        value = line.value
        isSecure = line.isSecure
        expiresAt = line.expiresAt
        sameSite = line.sameSite == .none && !line.isSecure ? .unset : line.sameSite
        createdAt = now
    }

    /// Compares all but `SameSite` and the time of creation, which do not change what a session sends.
    static func == (left: Cookie, right: Cookie) -> Bool {
        left.isSame(as: right) && left.value == right.value && left.isHostOnly == right.isHostOnly
            && left.isSecure == right.isSecure && left.expiresAt == right.expiresAt
            && left.reachesCallers == right.reachesCallers
    }

    /// The text before the value in a request's field; none if there is no name (RFC 6265bis §5.8.3).
    var namePrefix: [UInt8] { name.isEmpty ? [] : name.utf8 + [UInt8(ascii: "=")] }

    /// Returns whether `other` replaces this cookie (RFC 6265 §5.3, step 11).
    func isSame(as other: Cookie) -> Bool {
        // Compared as bytes: strings are equal even if one character is encoded in two ways.
        name == other.name && domain == other.domain && path.utf8.elementsEqual(other.path.utf8)
    }

    /// Returns whether this secure cookie would be shadowed by `other`, set without TLS.
    func isShadowed(by other: Cookie) -> Bool {
        isSecure && name == other.name
            && (Self.matches(host: domain, domain: other.domain) || Self.matches(host: other.domain, domain: domain))
            && Self.matches(path: other.path.utf8.span, cookiePath: path)
    }

    /// Returns whether the cookie has expired.
    func hasEnded(at now: Int64) -> Bool { expiresAt.map { $0 <= now } ?? false }

    /// Returns whether a request to `url` carries the cookie (RFC 6265 §5.4).
    func goes(to url: WebURL) -> Bool { goes(to: url.origin) && goes(below: url.path.utf8.span) }

    /// Returns whether requests to some paths of `origin` carry the cookie.
    func goes(to origin: Origin) -> Bool {
        guard isHostOnly ? origin.host == domain : Self.matches(host: origin.host, domain: domain) else { return false }
        return !isSecure || Self.isTrustworthy(origin)
    }

    /// Returns whether a request to `path` carries the cookie, if requests to its origin do.
    func goes(below path: Span<UInt8>) -> Bool { Self.matches(path: path, cookiePath: self.path) }

    /// Returns whether a secure cookie may be sent to `origin`: over TLS, or within this machine.
    static func isTrustworthy(_ origin: Origin) -> Bool { origin.scheme == .https || origin.isLoopback }

    /// Returns whether `host` matches `domain` (RFC 6265 §5.1.3). An address matches only itself.
    static func matches(host: String, domain: String) -> Bool {
        if host == domain { return true }
        let (host, domain) = (host.utf8, domain.utf8)
        // Compared as bytes: a dot with a combining accent is another `Character`.
        guard host.count > domain.count, host.dropFirst(host.count - domain.count).elementsEqual(domain),
            host.dropLast(domain.count).last == UInt8(ascii: ".")
        else { return false }
        return !isAddress(host)
    }

    private static func isAddress(_ host: String.UTF8View) -> Bool {
        host.contains(UInt8(ascii: ":")) || host.allSatisfy { $0 == 0x2E || $0.isDigit }
    }

    /// Returns whether `path` matches (RFC 6265 §5.1.4). Compares bytes without a copy, since each request on a session
    /// needs it.
    private static func matches(path: Span<UInt8>, cookiePath: String) -> Bool {
        let cookiePath = cookiePath.utf8.span
        let count = cookiePath.count
        // An empty path means the root.
        if path.isEmpty { return count == 1 && cookiePath[0] == UInt8(ascii: "/") }
        guard path.count >= count else { return false }
        for index in cookiePath.indices where path[index] != cookiePath[index] { return false }
        return path.count == count || count > 0 && cookiePath[count - 1] == UInt8(ascii: "/")
            || path[count] == UInt8(ascii: "/")
    }

    /// Returns the folder of the address without its slash (RFC 6265 §5.1.4).
    private static func defaultPath(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex, path.hasPrefix("/") else { return "/" }
        return String(path[..<slash])
    }
}
