// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// The `SameSite` attribute of a cookie (RFC 6265bis §5.6.7).
enum SameSite: Sendable {
    case strict, lax, none
    /// Missing, unknown, or `None` without `Secure`.
    ///
    /// Such a cookie is `Lax`; for two minutes it also goes along with a form of another site, as in Chromium
    /// (RFC 6265bis §5.6.7.2). RFC 6265bis refuses `None` without `Secure`; that would end logins over plain HTTP.
    case unset

    /// Creates the value of an attribute, in any case.
    init(_ text: Substring) {
        switch text.lowercased() {
        case "strict": self = .strict
        case "lax": self = .lax
        case "none": self = .none
        default: self = .unset
        }
    }
}

/// Relation of a request to the page that led to it (RFC 6265bis §5.2).
enum RequestSite: Sendable, Equatable {
    /// A request from the same site, or from no page.
    case same
    /// A request from another site with a safe method: a redirect or a link.
    case crossSafe
    /// A request from another site with any other method: a form.
    case crossUnsafe

    /// Creates the relation of a request to `target` that `chain` led to: a page, and the redirects since.
    init(_ method: HTTPRequest.Method, to target: Origin, from chain: Set<Origin>) {
        if chain.allSatisfy({ $0.isSameSite(as: target) }) {
            self = .same
        } else {
            self = method.isRetrieval ? .crossSafe : .crossUnsafe
        }
    }
}

extension Origin {
    /// Returns whether both origins are of one site (RFC 6265bis §5.2).
    ///
    /// There is no list of public suffixes. So only equal hosts are of one site, and a host with a domain above it of two
    /// labels or more. Two hosts below one domain are of different sites.
    func isSameSite(as other: Origin) -> Bool {
        guard scheme == other.scheme else { return false }
        if host == other.host { return true }
        return host.isBelow(other.host) || other.host.isBelow(host)
    }
}

extension String {
    /// Returns whether this host is below `domain`, which has two labels or more.
    fileprivate func isBelow(_ domain: String) -> Bool {
        domain.utf8.dropFirst().dropLast().contains(UInt8(ascii: ".")) && Cookie.matches(host: self, domain: domain)
    }
}

extension Cookie {
    /// The age in milliseconds up to which a cookie without `SameSite` goes along with a form of another site.
    private static let youth: Int64 = 120_000

    /// Returns whether `SameSite` allows the cookie in a request of `site` (RFC 6265bis §5.8.3).
    func isAllowed(in site: RequestSite, now: Int64) -> Bool {
        switch (site, sameSite) {
        case (.same, _), (_, .none): true
        case (.crossSafe, let attribute): attribute != .strict
        case (.crossUnsafe, .unset): (0..<Self.youth).contains(now.saturatingSubtract(createdAt))
        case (.crossUnsafe, _): false
        }
    }
}

extension CookieJar {
    /// Returns the value of `Cookie` in a request of `site` to `url` at `now`; `nil` without a matching cookie.
    func header(for url: WebURL, now: Int64, in site: RequestSite) -> Secret? {
        var choice = choice(for: url, now: now)
        for (index, cookie) in cookies.prefix(UInt64.bitWidth).enumerated()
        where !cookie.isAllowed(in: site, now: now) {
            choice &= ~(1 << UInt64(index))
        }
        return line(of: choice).field
    }
}
