// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// One cookie as it is kept (RFC 6265 section 5.3).
struct Cookie: Sendable, Equatable {
    let name: String
    let value: Secret
    /// In lower case, without a leading dot.
    let domain: String
    /// Whether only `domain` itself gets it, and no host below.
    let isHostOnly: Bool
    let path: String
    let isSecure: Bool
    let expiresAt: Int64?
    /// True if callers get it as well, and their own value takes its place (`cookies: { pass: … }`).
    var reachesCallers = false

    /// The cookie that `line` makes, coming from `url`; `nil` where it is not allowed to.
    init?(_ line: SetCookie, from url: WebURL) {
        let host = url.origin.host
        if let wanted = line.domain, wanted != host {
            // A bare label would be sent to half the internet.
            guard wanted.contains("."), Self.matches(host: host, domain: wanted) else { return nil }
            domain = wanted
            isHostOnly = false
        } else {
            domain = host
            // `Domain=intranet` from `intranet` means this host; `Domain=www.example.com` means those below it, too.
            isHostOnly = line.domain == nil || !host.contains(".")
        }
        guard !line.isSecure || Self.isTrustworthy(url.origin) else { return nil }
        path = line.path ?? Self.defaultPath(url.path)
        // The prefixes promise something (RFC 6265bis section 4.1.3); who does not keep it lies.
        let prefix = line.name.lowercased()
        if prefix.hasPrefix("__secure-"), !line.isSecure { return nil }
        if prefix.hasPrefix("__host-"), !line.isSecure || line.domain != nil || path != "/" { return nil }
        name = line.name
        value = line.value
        isSecure = line.isSecure
        expiresAt = line.expiresAt
    }

    /// Whether `other` takes its place (section 5.3, step 11).
    func isSame(as other: Cookie) -> Bool {
        // By their bytes: texts are equal also where the same sign is written in two ways.
        name.utf8.elementsEqual(other.name.utf8) && domain == other.domain && path.utf8.elementsEqual(other.path.utf8)
    }

    /// Whether this one, of TLS, would give way to `other`, which is not.
    func isShadowed(by other: Cookie) -> Bool {
        isSecure && name == other.name
            && (Self.matches(host: domain, domain: other.domain) || Self.matches(host: other.domain, domain: domain))
            && Self.matches(path: other.path.utf8.span, cookiePath: path)
    }

    /// Whether its time is over.
    func hasEnded(at now: Int64) -> Bool { expiresAt.map { $0 <= now } ?? false }

    /// Whether a request to `url` carries it (section 5.4).
    func goes(to url: WebURL) -> Bool { goes(to: url.origin) && goes(below: url.path.utf8.span) }

    /// Whether requests to some paths of `origin` carry it.
    func goes(to origin: Origin) -> Bool {
        guard isHostOnly ? origin.host == domain : Self.matches(host: origin.host, domain: domain) else { return false }
        return !isSecure || Self.isTrustworthy(origin)
    }

    /// Whether a request to `path` carries it, where it goes to the origin at all.
    func goes(below path: Span<UInt8>) -> Bool { Self.matches(path: path, cookiePath: self.path) }

    /// Whether `Secure` is kept by what goes there: TLS, or a way that does not leave this machine.
    static func isTrustworthy(_ origin: Origin) -> Bool { origin.scheme == .https || origin.isLoopback }

    /// Section 5.1.3. An address matches itself only.
    private static func matches(host: String, domain: String) -> Bool {
        if host == domain { return true }
        let (host, domain) = (host.utf8, domain.utf8)
        // By bytes: an accent on a dot makes another `Character`.
        guard host.count > domain.count, host.dropFirst(host.count - domain.count).elementsEqual(domain),
            host.dropLast(domain.count).last == UInt8(ascii: ".")
        else { return false }
        return !isAddress(host)
    }

    private static func isAddress(_ host: String.UTF8View) -> Bool {
        host.contains(UInt8(ascii: ":")) || host.allSatisfy { $0 == 0x2E || ($0 >= 0x30 && $0 <= 0x39) }
    }

    /// Section 5.1.4. By bytes and without a copy: each request on a held session asks.
    private static func matches(path: Span<UInt8>, cookiePath: String) -> Bool {
        let cookiePath = cookiePath.utf8.span
        let count = cookiePath.count
        // No path at all is that of the root.
        if path.isEmpty { return count == 1 && cookiePath[0] == UInt8(ascii: "/") }
        guard path.count >= count else { return false }
        for index in cookiePath.indices where path[index] != cookiePath[index] { return false }
        return path.count == count || count > 0 && cookiePath[count - 1] == UInt8(ascii: "/")
            || path[count] == UInt8(ascii: "/")
    }

    /// Section 5.1.4: the folder of the address, without its slash.
    private static func defaultPath(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex, path.hasPrefix("/") else { return "/" }
        return String(path[..<slash])
    }
}
