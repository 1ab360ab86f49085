// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Fields that a proxy acts on; every other name is `other`.
public enum FieldName: UInt8, CaseIterable, Sendable {
    case accept, acceptEncoding, acceptLanguage, age, allow, authenticationInfo, authorization, cacheControl, connection
    case contentEncoding, contentLength, contentLocation, contentRange, contentType, cookie, date, etag, expect
    case forwarded, host, http2Settings, ifModifiedSince, ifNoneMatch, keepAlive, location, maxForwards, mfpChallenge,
        mfpConflict
    case origin, pragma, proxyAuthenticate, proxyAuthenticationInfo, proxyAuthorization, proxyConnection, proxyStatus
    case range, referer, refresh, retryAfter, secFetchDest, secFetchMode, secFetchSite, secFetchUser, server, setCookie
    case te, trailer, transferEncoding, upgrade, userAgent, vary, via, wwwAuthenticate, xForwardedFor, xForwardedHost
    case xForwardedProto, other

    /// True if the field concerns one connection only and is never forwarded.
    ///
    /// RFC 9110 §7.6.1, whether or not `Connection` nominates it. Proxy-Authorization and Proxy-Authenticate concern
    /// the next proxy, which is this one (§11.7). HTTP2-Settings belonged to an upgrade of one connection (RFC 7540
    /// §3.2.1), now obsolete.
    public var isHopByHop: Bool {
        switch self {
        case .connection, .http2Settings, .keepAlive, .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
            .proxyConnection, .te, .trailer, .transferEncoding, .upgrade:
            true
        default: false
        }
    }

    /// True if the field must be dropped from a trailer section.
    ///
    /// Framing, routing, request modifiers, authentication, response control, and the format of the content (RFC 9110
    /// §6.5.1).
    public var isForbiddenInTrailers: Bool {
        switch self {
        case .accept, .acceptEncoding, .acceptLanguage, .age, .allow, .authenticationInfo, .authorization,
            .cacheControl, .contentEncoding, .contentLength, .contentLocation, .contentRange, .contentType, .cookie,
            .date, .expect, .forwarded, .host, .ifModifiedSince, .ifNoneMatch, .location, .maxForwards, .mfpChallenge,
            .mfpConflict, .origin, .pragma, .range, .referer, .refresh, .retryAfter, .secFetchDest, .secFetchMode,
            .secFetchSite, .secFetchUser, .setCookie, .userAgent, .vary, .via, .wwwAuthenticate, .xForwardedFor,
            .xForwardedHost, .xForwardedProto:
            true
        default: isHopByHop
        }
    }
}

extension FieldName {
    /// Finds the field that `range` of `bytes` names, ignoring case (RFC 9110 §5.1).
    ///
    /// Switches on length and first letter, then compares with the remaining names, mostly one, without a string or a
    /// hash.
    public init(_ bytes: Span<UInt8>, _ range: ByteRange) {
        guard !range.isEmpty, range.end <= bytes.count else {
            self = .other
            return
        }
        func spells(_ name: StaticString) -> Bool { bytes.matches(range, ignoringCase: name) }
        self =
            switch (range.count, bytes[range.start].lowercased) {
            case (2, UInt8(ascii: "t")):
                spells("te") ? .te : .other
            case (3, UInt8(ascii: "a")):
                spells("age") ? .age : .other
            case (3, UInt8(ascii: "v")):
                spells("via") ? .via : .other
            case (4, UInt8(ascii: "d")):
                spells("date") ? .date : .other
            case (4, UInt8(ascii: "e")):
                spells("etag") ? .etag : .other
            case (4, UInt8(ascii: "h")):
                spells("host") ? .host : .other
            case (4, UInt8(ascii: "v")):
                spells("vary") ? .vary : .other
            case (5, UInt8(ascii: "a")):
                spells("allow") ? .allow : .other
            case (5, UInt8(ascii: "r")):
                spells("range") ? .range : .other
            case (6, UInt8(ascii: "a")):
                spells("accept") ? .accept : .other
            case (6, UInt8(ascii: "c")):
                spells("cookie") ? .cookie : .other
            case (6, UInt8(ascii: "e")):
                spells("expect") ? .expect : .other
            case (6, UInt8(ascii: "o")):
                spells("origin") ? .origin : .other
            case (6, UInt8(ascii: "p")):
                spells("pragma") ? .pragma : .other
            case (6, UInt8(ascii: "s")):
                spells("server") ? .server : .other
            case (7, UInt8(ascii: "r")):
                spells("referer") ? .referer : spells("refresh") ? .refresh : .other
            case (7, UInt8(ascii: "t")):
                spells("trailer") ? .trailer : .other
            case (7, UInt8(ascii: "u")):
                spells("upgrade") ? .upgrade : .other
            case (8, UInt8(ascii: "l")):
                spells("location") ? .location : .other
            case (9, UInt8(ascii: "f")):
                spells("forwarded") ? .forwarded : .other
            case (10, UInt8(ascii: "c")):
                spells("connection") ? .connection : .other
            case (10, UInt8(ascii: "k")):
                spells("keep-alive") ? .keepAlive : .other
            case (10, UInt8(ascii: "s")):
                spells("set-cookie") ? .setCookie : .other
            case (10, UInt8(ascii: "u")):
                spells("user-agent") ? .userAgent : .other
            case (11, UInt8(ascii: "r")):
                spells("retry-after") ? .retryAfter : .other
            case (12, UInt8(ascii: "c")):
                spells("content-type") ? .contentType : .other
            case (12, UInt8(ascii: "m")):
                spells("max-forwards") ? .maxForwards : spells("mfp-conflict") ? .mfpConflict : .other
            case (12, UInt8(ascii: "p")):
                spells("proxy-status") ? .proxyStatus : .other
            case (13, UInt8(ascii: "a")):
                spells("authorization") ? .authorization : .other
            case (13, UInt8(ascii: "c")):
                spells("cache-control") ? .cacheControl : spells("content-range") ? .contentRange : .other
            case (13, UInt8(ascii: "i")):
                spells("if-none-match") ? .ifNoneMatch : .other
            case (13, UInt8(ascii: "m")):
                spells("mfp-challenge") ? .mfpChallenge : .other
            case (14, UInt8(ascii: "c")):
                spells("content-length") ? .contentLength : .other
            case (14, UInt8(ascii: "h")):
                spells("http2-settings") ? .http2Settings : .other
            case (14, UInt8(ascii: "s")):
                spells("sec-fetch-dest")
                    ? .secFetchDest
                    : spells("sec-fetch-mode")
                        ? .secFetchMode
                        : spells("sec-fetch-site")
                            ? .secFetchSite
                            : spells("sec-fetch-user")
                                ? .secFetchUser
                                : .other
            case (15, UInt8(ascii: "a")):
                spells("accept-encoding") ? .acceptEncoding : spells("accept-language") ? .acceptLanguage : .other
            case (15, UInt8(ascii: "x")):
                spells("x-forwarded-for") ? .xForwardedFor : .other
            case (16, UInt8(ascii: "c")):
                spells("content-encoding")
                    ? .contentEncoding
                    : spells("content-location")
                        ? .contentLocation
                        : .other
            case (16, UInt8(ascii: "p")):
                spells("proxy-connection") ? .proxyConnection : .other
            case (16, UInt8(ascii: "w")):
                spells("www-authenticate") ? .wwwAuthenticate : .other
            case (16, UInt8(ascii: "x")):
                spells("x-forwarded-host") ? .xForwardedHost : .other
            case (17, UInt8(ascii: "i")):
                spells("if-modified-since") ? .ifModifiedSince : .other
            case (17, UInt8(ascii: "t")):
                spells("transfer-encoding") ? .transferEncoding : .other
            case (17, UInt8(ascii: "x")):
                spells("x-forwarded-proto") ? .xForwardedProto : .other
            case (18, UInt8(ascii: "p")):
                spells("proxy-authenticate") ? .proxyAuthenticate : .other
            case (19, UInt8(ascii: "a")):
                spells("authentication-info") ? .authenticationInfo : .other
            case (19, UInt8(ascii: "p")):
                spells("proxy-authorization") ? .proxyAuthorization : .other
            case (25, UInt8(ascii: "p")):
                spells("proxy-authentication-info") ? .proxyAuthenticationInfo : .other
            default: .other
            }
    }
}

// CGI names fields in capitals and underscores (RFC 3875 §4.1.18), and so do WSGI, Rack, PHP and others: `X_Api_Key`
// and `X-Api-Key` are one field to them.
extension FieldName {
    /// Finds the field that a CGI program reads from `name`: underscores count as hyphens.
    public init(foldingUnderscoresIn name: Span<UInt8>) {
        var folded: [UInt8] = []
        folded.reserveCapacity(name.count)
        for index in name.indices { folded.append(name[index].inFieldName) }
        self.init(folded.span, ByteRange(start: 0, end: folded.count))
    }

    /// Returns the known field that `name` imitates with underscores, `other` for most names.
    ///
    /// A CGI program would read `name` as the returned field.
    public static func imitated(by name: Span<UInt8>) -> FieldName {
        for index in name.indices where name[index] == UInt8(ascii: "_") {
            return FieldName(foldingUnderscoresIn: name)
        }
        return .other
    }

    /// Returns true if CGI programs cannot distinguish the two names.
    ///
    /// Case is ignored, and underscores count as hyphens.
    public static func areEqualToCGI(_ one: Span<UInt8>, _ two: Span<UInt8>) -> Bool {
        guard one.count == two.count else { return false }
        for index in one.indices where one[index].inFieldName != two[index].inFieldName { return false }
        return true
    }
}

extension FieldLine {
    /// Returns the known field that this line imitates with underscores, `other` for most lines.
    public func imitated(in bytes: Span<UInt8>) -> FieldName {
        guard kind == .other, name.end <= bytes.count else { return .other }
        return FieldName.imitated(by: bytes.extracting(name.bounds))
    }

    /// Returns true if the line must not be forwarded from a trailer section.
    ///
    /// Decided by its own name and by the field that a CGI program would read from it.
    func isForbiddenInTrailers(in bytes: Span<UInt8>) -> Bool {
        kind.isForbiddenInTrailers || imitated(in: bytes).isForbiddenInTrailers
    }
}

extension UInt8 {
    /// The byte as CGI compares names.
    fileprivate var inFieldName: UInt8 { self == UInt8(ascii: "_") ? UInt8(ascii: "-") : lowercased }
}
