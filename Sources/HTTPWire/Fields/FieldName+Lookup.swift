// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension FieldName {
    /// The field named by `range` of `bytes`; names are compared without regard to case (RFC 9110 section 5.1).
    ///
    /// By length first, then by comparison with the few names of that length: no text and no hash is made.
    package init(_ bytes: Span<UInt8>, _ range: ByteRange) {
        func spells(_ name: StaticString) -> Bool { bytes.matches(range, ignoringCase: name) }
        self =
            switch range.count {
            case 2:
                spells("te") ? .te : .other
            case 3:
                spells("age") ? .age : spells("via") ? .via : .other
            case 4:
                spells("date")
                    ? .date
                    : spells("etag")
                        ? .etag
                        : spells("host")
                            ? .host
                            : spells("vary")
                                ? .vary
                                : .other
            case 5:
                spells("allow") ? .allow : spells("range") ? .range : .other
            case 6:
                spells("accept")
                    ? .accept
                    : spells("cookie")
                        ? .cookie
                        : spells("expect")
                            ? .expect
                            : spells("origin")
                                ? .origin
                                : spells("pragma")
                                    ? .pragma
                                    : spells("server")
                                        ? .server
                                        : .other
            case 7:
                spells("referer")
                    ? .referer
                    : spells("refresh")
                        ? .refresh
                        : spells("trailer")
                            ? .trailer
                            : spells("upgrade")
                                ? .upgrade
                                : .other
            case 8:
                spells("location") ? .location : .other
            case 9:
                spells("forwarded") ? .forwarded : .other
            case 10:
                spells("connection")
                    ? .connection
                    : spells("keep-alive")
                        ? .keepAlive
                        : spells("set-cookie")
                            ? .setCookie
                            : spells("user-agent")
                                ? .userAgent
                                : .other
            case 11:
                spells("retry-after") ? .retryAfter : .other
            case 12:
                spells("content-type")
                    ? .contentType
                    : spells("max-forwards")
                        ? .maxForwards
                        : spells("mfp-conflict")
                            ? .mfpConflict
                            : spells("proxy-status")
                                ? .proxyStatus
                                : .other
            case 13:
                spells("authorization")
                    ? .authorization
                    : spells("cache-control")
                        ? .cacheControl
                        : spells("content-range")
                            ? .contentRange
                            : spells("if-none-match")
                                ? .ifNoneMatch
                                : spells("mfp-challenge")
                                    ? .mfpChallenge
                                    : .other
            case 14:
                spells("content-length")
                    ? .contentLength
                    : spells("sec-fetch-dest")
                        ? .secFetchDest
                        : spells("sec-fetch-mode")
                            ? .secFetchMode
                            : spells("sec-fetch-site")
                                ? .secFetchSite
                                : spells("sec-fetch-user")
                                    ? .secFetchUser
                                    : .other
            case 15:
                spells("accept-encoding")
                    ? .acceptEncoding
                    : spells("accept-language")
                        ? .acceptLanguage
                        : spells("x-forwarded-for")
                            ? .xForwardedFor
                            : .other
            case 16:
                spells("content-encoding")
                    ? .contentEncoding
                    : spells("content-location")
                        ? .contentLocation
                        : spells("proxy-connection")
                            ? .proxyConnection
                            : spells("www-authenticate")
                                ? .wwwAuthenticate
                                : spells("x-forwarded-host")
                                    ? .xForwardedHost
                                    : .other
            case 17:
                spells("if-modified-since")
                    ? .ifModifiedSince
                    : spells("transfer-encoding")
                        ? .transferEncoding
                        : spells("x-forwarded-proto")
                            ? .xForwardedProto
                            : .other
            case 18:
                spells("proxy-authenticate") ? .proxyAuthenticate : .other
            case 19:
                spells("authentication-info")
                    ? .authenticationInfo
                    : spells("proxy-authorization")
                        ? .proxyAuthorization
                        : .other
            case 25:
                spells("proxy-authentication-info") ? .proxyAuthenticationInfo : .other
            default: .other
            }
    }
}
