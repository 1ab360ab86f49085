// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPWire

@testable import Proxy

/// Rewrites names of the upstream for the caller. The first byte chooses the kind: `c` a `Set-Cookie`, `k` a caller's
/// `Cookie`, `l` a `Location`, `r` a `Refresh`; the second one the address. Values are as a head's reader leaves them.
func fuzzRewriting(_ input: Span<UInt8>) throws(Violation) {
    guard input.count > 1 else { return }
    let site = Site.all[Int(input[1]) % Site.all.count]
    let value = Array(input.array[2...])
    guard Oracle.isValue(value), Oracle.isTrimmed(value) else { return }
    switch input[0] {
    case UInt8(ascii: "c"): try checkSetCookie(value, site)
    case UInt8(ascii: "k"): try checkCookies(value)
    case UInt8(ascii: "l"): try checkLocation(value, site)
    case UInt8(ascii: "r"): try checkRefresh(value, site)
    default: break
    }
}

/// An upstream at `https://bank.example` and how it is reached from `http://localhost:8080`.
struct Site: Sendable {
    /// The path of its `url`, without the slash at its end.
    let base: String
    /// The prefix that a route removes, without the slash at its end.
    let prefix: String

    static let all = [Site(base: "", prefix: ""), Site(base: "/a", prefix: "/p"), Site(base: "/a", prefix: "")]

    var place: MappedAddress {
        MappedAddress(
            upstream: "u", origin: Origin(scheme: .https, host: "bank.example"), base: Array(base.utf8),
            prefix: Array(prefix.utf8))
    }

    var addresses: ReverseMapping {
        let routes = prefix.isEmpty ? [] : [Router.Route(path: "\(prefix)/", upstream: "u", stripsPrefix: true)]
        let place = place
        return ReverseMapping(
            authority: Array("localhost:8080".utf8), here: place,
            router: Router(routes: routes, fallback: prefix.isEmpty ? "u" : nil)
        ) { [place] }
    }
}

// MARK: Cookies

private func checkSetCookie(_ cookie: [UInt8], _ site: Site) throws(Violation) {
    let rewritten = LocalCookie.local(cookie.span, from: site.place)
    let local = rewritten ?? cookie
    try require(Oracle.isValue(local), "a cookie that splits a field")
    guard let set = JarOracle(cookie, host: "bank.example", isSecure: true) else { return }
    guard let kept = JarOracle(local, host: "localhost", isSecure: false) else {
        throw Violation(description: "the caller drops \(String(decoding: local, as: UTF8.self))")
    }
    try require(kept.value == set.value, "another value")
    try require(!kept.isSecure && kept.sameSite != "none", "a cookie for HTTPS only")
    try require(set.sameSite == "none" || kept.sameSite == set.sameSite, "\(set.sameSite) becomes \(kept.sameSite)")
    try require(kept.others == set.others, "other attributes")
    try require(kept.domain == nil, "a cookie for other hosts")
    try checkPaths(set, kept, site)
    // A name with our own prefix comes back without it.
    guard !set.name.starts(with: "countersign-__".utf8) else { return }
    let pair = kept.name + [UInt8(ascii: "=")] + kept.value
    let restored = LocalCookie.restored(pair.span) ?? pair
    try require(restored == set.name + [UInt8(ascii: "=")] + set.value, "it comes back as another")
}

/// Wherever the upstream is to get the cookie it gets it, and within its base path nowhere else.
private func checkPaths(_ set: JarOracle, _ kept: JarOracle, _ site: Site) throws(Violation) {
    guard let path = set.path else {
        try require(kept.path == nil, "a path of its own")
        return
    }
    let own = Array(site.base.utf8)
    let isBeside = !path.starts(with: own) && !own.starts(with: path)
    let samples =
        ["/", "/b", "/b/c", "/p", "/a/a"].map { own + Array($0.utf8) } + [path, path + [0x2F, 0x62], path + [0x62]]
    for sample in samples where sample.starts(with: own + [UInt8(ascii: "/")]) {
        let here = Array(site.prefix.utf8) + sample.dropFirst(own.count)
        let isSent = kept.isSent(to: here)
        if set.isSent(to: sample) {
            try require(isSent, "not sent to \(String(decoding: here, as: UTF8.self))")
        } else {
            try require(!isSent || isBeside, "sent to \(String(decoding: here, as: UTF8.self))")
        }
    }
}

private func checkCookies(_ cookies: [UInt8]) throws(Violation) {
    guard let restored = LocalCookie.restored(cookies.span) else { return }
    let before = cookies.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
    let after = restored.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
    try require(before.count == after.count, "more cookies, or fewer")
    for (pair, restored) in zip(before, after) where !pair.elementsEqual(restored) {
        let blank = pair.prefix { $0 == 32 || $0 == 9 }
        try require(
            pair.dropFirst(blank.count).starts(with: "countersign-__".utf8)
                && restored.elementsEqual(blank + pair.dropFirst(blank.count + 12)),
            "a cookie of somebody else is changed")
    }
}

// MARK: Addresses

private func checkLocation(_ reference: [UInt8], _ site: Site) throws(Violation) {
    // A fragment is kept, but has no effect on the destination.
    let said = withoutFragment(reference)
    let local = site.addresses.local(reference.span, ByteRange(start: 0, end: reference.count))
    try require(Oracle.isValue(local ?? []), "an address that splits a field")
    // The result of another reader of addresses for both, which begins at the addresses of the request.
    let origin = Origin(scheme: .https, host: "bank.example")
    let meant = WebURL(origin: origin, path: "\(site.base)/x/y").resolving(said)
    guard let local else {
        guard let meant, meant.origin == origin, meant.path.hasPrefix("\(site.base)/") else { return }
        // Dots and percent-encoding hide segments; a port may be so long that the stricter reader gives up.
        let isPlain =
            reference.allSatisfy { Oracle.isTokenByte($0) || ":/?=&".utf8.contains($0) }
            && !["/.", "%", ":0"].contains { said.contains($0) }
        // Relative to the page, or the same on both sides.
        let isPath = said.hasPrefix("/") && !said.hasPrefix("//")
        let isSame = isPath && site.base == site.prefix
        let isWhole = ["http://", "https://"].contains { said.lowercased().hasPrefix($0) }
        let isRelative = !said.hasPrefix("/") && !isWhole
        try require(!isPlain || isSame || isRelative, "\(said) leads around the proxy")
        return
    }
    guard let meant else { return }
    let here = Origin(scheme: .http, host: "localhost", port: 8080)
    let text = withoutFragment(local)
    let followed = WebURL(origin: here, path: "\(site.prefix)/x/y").resolving(text)
    guard let followed else { throw Violation(description: "\(said) becomes \(text), which is none") }
    try require(followed.origin == here, "\(said) becomes \(text), which leads elsewhere")
    try require(site.place.isNamed(by: meant.origin), "\(said) was somebody else's")
    try require(followed.query == meant.query, "\(said) becomes \(text), with another query")
    let there = site.base + followed.path.dropFirst(site.prefix.count)
    try require(
        followed.path.hasPrefix(site.prefix) && (there == meant.path || there == "\(meant.path)/"),
        "\(said) becomes \(text), which is \(there) there")
}

private func withoutFragment(_ reference: [UInt8]) -> String {
    String(decoding: reference.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
}

private func checkRefresh(_ value: [UInt8], _ site: Site) throws(Violation) {
    let range = RefreshTarget.range(value.span, ByteRange(start: 0, end: value.count))
    let found = range.map { value[$0.bounds] }
    try require(
        Array(found ?? []) == (RefreshOracle.target(of: value) ?? []),
        "the address is \(String(decoding: RefreshOracle.target(of: value) ?? [], as: UTF8.self))")
    if let found { try checkLocation(Array(found), site) }
}

/// A cookie as a browser keeps it, read in the words of RFC 6265 §5.2 and §5.3 and of its successor's §5.7.
struct JarOracle {
    var name: [UInt8]
    var value: [UInt8]
    /// The domain that it is sent to besides; `nil`: to the host alone that has set it.
    var domain: String?
    /// `nil`: the folder of the request's path.
    var path: [UInt8]?
    var isSecure = false
    /// In lower case; empty if it is not one of the three.
    var sameSite = ""
    /// Attributes that mean the same everywhere, as they were written.
    var others: [[UInt8]] = []

    /// `nil` if a browser that speaks to `host` keeps nothing.
    init?(_ bytes: [UInt8], host: String, isSecure secureConnection: Bool) {
        let parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let pair = parts.first, let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        name = Self.trimmed(pair[..<sign])
        value = Self.trimmed(pair[(sign + 1)...])
        guard !name.isEmpty else { return nil }
        var isPartitioned = false
        for part in parts.dropFirst() {
            let sign = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
            let value = Self.trimmed(part[sign...].dropFirst())
            switch String(decoding: Self.trimmed(part[..<sign]), as: UTF8.self).lowercased() {
            case "domain":
                guard !value.isEmpty else { continue }
                let text = String(decoding: value, as: UTF8.self).lowercased()
                domain = text.hasPrefix(".") ? String(text.dropFirst()) : text
            case "path":
                path = value.first == UInt8(ascii: "/") ? value : nil
            case "secure":
                self.isSecure = true
            case "partitioned":
                isPartitioned = true
            case "samesite":
                let text = String(decoding: value, as: UTF8.self).lowercased()
                sameSite = ["none", "lax", "strict"].contains(text) ? text : ""
            default:
                others.append(Array(part))
            }
        }
        if domain?.isEmpty == true { domain = nil }
        if let domain {
            // The same, or a parent of it; the latter stays a domain.
            guard host == domain || host.hasSuffix(".\(domain)") else { return nil }
        }
        if secureConnection { return }
        if self.isSecure || isPartitioned || sameSite == "none" { return nil }
        let start = String(decoding: name, as: UTF8.self).lowercased()
        if start.hasPrefix("__secure-") || start.hasPrefix("__host-") || start.hasPrefix("__http-") { return nil }
    }

    /// RFC 6265 §5.1.4, for a cookie with a path.
    func isSent(to request: [UInt8]) -> Bool {
        guard let path else { return false }
        guard request.starts(with: path) else { return false }
        return request.count == path.count || path.last == UInt8(ascii: "/")
            || request[path.count] == UInt8(ascii: "/")
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let isBlank = { (byte: UInt8) in byte == 32 || byte == 9 }
        return Array(bytes.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }
}

/// HTML's "shared declarative refresh steps", for field values: their white space is spaces and tabs only.
enum RefreshOracle {
    /// Returns the address, before it is parsed; `nil` without a refresh, or without one to another address.
    static func target(of value: [UInt8]) -> [UInt8]? {
        var rest = value[...]
        func skipBlanks() { rest = rest.drop { $0 == 32 || $0 == 9 } }
        skipBlanks()
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        if digits.isEmpty, rest.first != UInt8(ascii: ".") { return nil }
        rest = rest.drop { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
        guard let sign = rest.first else { return nil }
        guard [UInt8(ascii: ";"), UInt8(ascii: ","), 32, 9].contains(sign) else { return nil }
        skipBlanks()
        if rest.first == UInt8(ascii: ";") || rest.first == UInt8(ascii: ",") { rest = rest.dropFirst() }
        skipBlanks()
        let whole = rest
        if rest.first == UInt8(ascii: "u") || rest.first == UInt8(ascii: "U") {
            guard String(decoding: rest.prefix(3), as: UTF8.self).lowercased() == "url" else { return Array(whole) }
            rest = rest.dropFirst(3)
            skipBlanks()
            guard rest.first == UInt8(ascii: "=") else { return Array(whole) }
            rest = rest.dropFirst()
            skipBlanks()
        }
        guard let quote = rest.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            return Array(rest)
        }
        return Array(rest.dropFirst().prefix { $0 != quote })
    }
}
