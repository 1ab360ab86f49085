// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension FieldName {
    /// The field named by `range` of `bytes`; names are compared without regard to case (RFC 9110 section 5.1).
    ///
    /// By length and first letter, then by comparison with what is left, mostly one name: no text and no hash is made.
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
