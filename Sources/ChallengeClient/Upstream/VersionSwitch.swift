// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import HTTPWire

/// Takes a handle that may speak HTTP/2 to HTTP/1.1 for a request, and back again.
///
/// Over HTTP/2 libcurl before 8.1 loses an answer that comes before the request's body is sent, if the server resets the stream
/// along with it, as it should (RFC 9113 §8.1): a challenge to an upload, or its refusal, would become a failure of the
/// upstream. It also ends the stream as if the body were whole. So long bodies go over HTTP/1.1.
struct VersionSwitch {
    /// The longest body, in bytes, that goes out before any answer can come: the window of a new stream (RFC 9113 §6.9.2).
    static let mostOverHTTP2: UInt64 = 65_535

    private let minimum: TLSVersion

    /// The switch of handles that connect by `settings` to `origin`; `nil` where none is needed, or the settings say which
    /// version is spoken.
    init?(_ settings: ConnectionSettings, mayBeHTTP2: Bool) {
        guard mayBeHTTP2, settings.version == .auto, Self.isNeeded else { return nil }
        minimum = settings.minimum
    }

    private static let isNeeded = CurlFeatures.installed.versionNumber < 0x08_01_00

    /// True if `request` is one for HTTP/1.1: its body may still be on its way when the answer comes.
    func applies(to request: ExchangeRequest) -> Bool {
        switch request.framing {
        case .none: false
        case .length(let length): length > Self.mostOverHTTP2 || request.expectsContinue && length > 0
        case .chunked: true
        }
    }

    /// Sets `easy` up for one or the other.
    func apply(isHTTP1: Bool, to easy: EasyHandle) throws(CurlError) {
        let version: Curl.HTTPVersion = isHTTP1 ? .http11 : .http2OverTLS
        try easy.set(.httpVersion, version.rawValue)
        // libcurl would take up a resting connection of HTTP/1.1 for a request that others could share a connection with.
        // That TLS goes up to the latest version there is says nothing new, but it keeps them apart.
        try easy.set(.sslVersion, isHTTP1 ? minimum.upToLatest : minimum.rawValue)
    }
}
