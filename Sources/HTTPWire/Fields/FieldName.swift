// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The fields that a gateway acts on; every other name is `other`.
public enum FieldName: UInt8, CaseIterable, Sendable {
    case accept, acceptEncoding, acceptLanguage, age, allow, authenticationInfo, authorization, cacheControl, connection
    case contentEncoding, contentLength, contentLocation, contentRange, contentType, cookie, date, etag, expect
    case forwarded, host, http2Settings, ifModifiedSince, ifNoneMatch, keepAlive, location, maxForwards, mfpChallenge,
        mfpConflict
    case origin, pragma, proxyAuthenticate, proxyAuthenticationInfo, proxyAuthorization, proxyConnection, proxyStatus
    case range, referer, refresh, retryAfter, secFetchDest, secFetchMode, secFetchSite, secFetchUser, server, setCookie
    case te, trailer, transferEncoding, upgrade, userAgent, vary, via, wwwAuthenticate, xForwardedFor, xForwardedHost
    case xForwardedProto, other

    /// True if the field concerns one connection only and is never forwarded (RFC 9110 section 7.6.1), be it nominated
    /// or not. Proxy-Authorization and Proxy-Authenticate concern the next proxy, which we are (section 11.7).
    /// HTTP2-Settings went with an upgrade of one connection (RFC 7540 section 3.2.1), which is no more.
    public var isHopByHop: Bool {
        switch self {
        case .connection, .http2Settings, .keepAlive, .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
            .proxyConnection, .te, .trailer, .transferEncoding, .upgrade:
            true
        default: false
        }
    }

    /// True if the field must not be merged or forwarded from a trailer section: framing, routing, request modifiers,
    /// authentication, response control, and how the content is to be read (RFC 9110 section 6.5.1).
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
