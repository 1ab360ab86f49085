// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The browsers' requests that a listener serves.
package enum BrowserRule: Sendable, Equatable {
    /// All requests, from any page.
    case allow
    /// Requests of its own pages, and navigation by a person.
    case refuse
    /// As `refuse`, and requests of pages of these origins: `https://app.example`, in lower case, without a default
    /// port.
    case origins(Set<String>)
}

/// Fields with which a browser names the page that sends a request: Fetch Metadata, and `Origin` (RFC 6454 §7).
///
/// `Referer` is not used: a page can suppress it (`Referrer-Policy: no-referrer`), so it stops no attack.
struct FetchMetadata {
    private var site: ByteRange?
    private var mode: ByteRange?
    private var origin: ByteRange?
    private var hasDestination = false
    private var hasUser = false
    /// True if a field is repeated: browsers never do that, and readers differ in which one they use.
    private var isRepeated = false

    /// Records a line of the request's head, if it is one of these fields.
    mutating func take(_ line: FieldLine) {
        switch line.kind {
        case .origin:
            isRepeated = isRepeated || origin != nil
            origin = line.value
        case .secFetchDest:
            isRepeated = isRepeated || hasDestination
            hasDestination = true
        case .secFetchMode:
            isRepeated = isRepeated || mode != nil
            mode = line.value
        case .secFetchSite:
            isRepeated = isRepeated || site != nil
            site = line.value
        case .secFetchUser:
            isRepeated = isRepeated || hasUser
            hasUser = true
        default: break
        }
    }

    /// Returns true if `rule` refuses the request. `isSchemeKnown`: callers use plain HTTP; those of another proxy may use TLS.
    func isRefused(by rule: BrowserRule, _ head: RequestHead, in bytes: Span<UInt8>, isSchemeKnown: Bool = true) -> Bool
    {
        switch rule {
        case .allow: return false
        case .refuse: break
        case .origins(let origins):
            if !isRepeated, let origin, origins.contains(bytes.text(origin)) { return false }
        }
        if isRepeated { return true }
        if let site, !isOwnOrTyped(site, in: bytes) { return true }
        if let origin, !Self.isOwn(origin, of: head, in: bytes, isSchemeKnown: isSchemeKnown) { return true }
        return isPreflight(head, in: bytes)
    }

    /// Returns true if the page is of the same origin, or if there is no page: a person typed the address or used a
    /// bookmark. A page on another port is of another origin, though of the same site.
    private func isOwnOrTyped(_ site: ByteRange, in bytes: Span<UInt8>) -> Bool {
        if bytes.matches(site, ignoringCase: "same-origin") { return true }
        guard bytes.matches(site, ignoringCase: "none"), let mode else { return false }
        return bytes.matches(mode, ignoringCase: "navigate")
    }

    /// Returns true for a CORS preflight, which browsers send only for pages of other origins.
    private func isPreflight(_ head: RequestHead, in bytes: Span<UInt8>) -> Bool {
        guard head.method == .options else { return false }
        return head.fields.contains {
            $0.kind == .other && bytes.matches($0.name, ignoringCase: "access-control-request-method")
        }
    }

    /// Returns true if a serialized origin, `scheme://host[:port]` (RFC 6454 §6.2), is that of the request's own target.
    static func isOwn(_ origin: ByteRange, of head: RequestHead, in bytes: Span<UInt8>, isSchemeKnown: Bool) -> Bool {
        guard let range = head.authority, let own = Authority(bytes, range) else { return false }
        for (length, port, isServed) in [(7, UInt16(80), true), (8, 443, !isSchemeKnown)] where isServed {
            let scheme: StaticString = length == 7 ? "http://" : "https://"
            guard origin.count > length,
                bytes.matches(ByteRange(start: origin.start, end: origin.start + length), ignoringCase: scheme),
                let named = Authority(bytes, ByteRange(start: origin.start + length, end: origin.end))
            else { continue }
            return (named.port ?? port) == (own.port ?? port)
                && HostPolicy.canonical(bytes.text(named.host)) == HostPolicy.canonical(bytes.text(own.host))
        }
        return false
    }
}
