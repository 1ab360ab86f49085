// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Curl
internal import HTTPWire

/// The settings of connections to an upstream.
package struct ConnectionSettings: Sendable, Equatable {
    /// The versions of HTTP to use.
    package enum Version: String, Sendable, CaseIterable {
        /// HTTP/2 if the server offers it by ALPN, otherwise HTTP/1.1.
        case auto
        /// HTTP/1.1 only.
        case http1 = "1.1"
        /// HTTP/2 by ALPN as with `auto`; over plain HTTP with prior knowledge.
        case http2 = "2"
    }

    /// The versions of HTTP.
    package var version = Version.auto
    /// The version and the pins of TLS, and the files of the certificates and the key.
    package var tls = TLSSettings()
    /// The trusted CA certificates in place of the system's, PEM.
    package var authorities: Blob?
    /// The client certificate, PEM.
    package var certificate: Blob?
    /// Its key, PEM.
    package var key: Blob?
    /// The URL of an outbound HTTP or SOCKS5 proxy; `nil` for direct connections, even if the environment names a
    /// proxy.
    package var proxy: String?

    /// True if secrets may be sent to another machine unencrypted.
    package var allowsPlaintext = false

    /// The defaults: the system's CAs, no proxy.
    package init() {}

    /// Returns true if a connection to `origin` may use HTTP/2: by ALPN, or by configuration.
    func mayBeHTTP2(to origin: Origin) -> Bool {
        version == .http2 || version == .auto && origin.scheme == .https
    }

    /// Returns true if secrets may be sent to `origin`: over TLS, or within this machine.
    ///
    /// Behind a proxy, loopback addresses are the proxy's. A name that only resolves to loopback counts as another
    /// machine, because DNS decides its address.
    func mayCarrySecrets(to origin: Origin) -> Bool {
        origin.scheme == .https || allowsPlaintext || origin.isLoopback && proxy == nil
    }

    /// Returns true if transfers to `origin` may share and reuse connections.
    ///
    /// Not over HTTP/2 without TLS with libcurl before 8.0, where any second transfer on such a connection fails (curl
    /// #10634).
    func sharesConnections(to origin: Origin) -> Bool {
        version != .http2 || origin.scheme == .https || CurlFeatures.installed.versionNumber >= 0x08_00_00
    }

    /// Returns the settings for a login server at another origin.
    ///
    /// Client certificate, key and pins are left out; CAs and proxy stay.
    package func elsewhere() -> ConnectionSettings {
        var settings = self
        settings.certificate = nil
        settings.key = nil
        settings.tls.pins = []
        return settings
    }

    /// Configures `easy` for transfers to `origin`. Called once per handle.
    package func apply(to easy: EasyHandle, for origin: Origin) throws(CurlError) {
        if !sharesConnections(to: origin) {
            try easy.useOnce()
        }
        switch version {
        case .auto: try easy.set(.httpVersion, Curl.HTTPVersion.http2OverTLS.rawValue)
        case .http1: try easy.set(.httpVersion, Curl.HTTPVersion.http11.rawValue)
        case .http2: try easy.set(.httpVersion, Curl.HTTPVersion.http2PriorKnowledge.rawValue)
        }
        try easy.set(.sslVersion, tls.minimum.number)
        // A libcurl built with a CA folder trusts that in addition to a blob or file, and then reads the system's CA
        // file at each handshake, which takes 50 ms. Without the folder the parsed file is cached.
        if authorities != nil || easy.hasAuthorities { try easy.clear(.caFolder) }
        if let authorities { try easy.set(.authorities, authorities) }
        if let certificate { try easy.set(.certificate, certificate) }
        if let key { try easy.set(.key, key) }
        if !tls.pins.isEmpty { try easy.set(.pinnedPublicKey, tls.pins.joined(separator: ";")) }
        if let proxy {
            try easy.set(.proxy, proxy)
            try easy.set(.httpProxyTunnel, true)
        }
    }
}

extension EasyHandle {
    /// Makes each transfer use a new connection, which ends with the transfer.
    ///
    /// Over HTTP/2, other transfers of the same multi handle can still join the connection unless they do the same.
    func useOnce() throws(CurlError) {
        try set(.freshConnect, true)
        try set(.forbidReuse, true)
    }
}

extension TLSVersion {
    /// The value of `sslVersion` (`CURL_SSLVERSION_*`).
    var number: Int {
        switch self {
        case .tls12: 6
        case .tls13: 7
        }
    }

    /// The value of `sslVersion` that also permits the latest version (`CURL_SSLVERSION_MAX_DEFAULT`).
    var upToLatest: Int { number | 1 << 16 }
}

/// Switches a handle that may use HTTP/2 to HTTP/1.1 for a request, and back.
///
/// Over HTTP/2 libcurl before 8.1 loses an answer that comes before the request's body is sent, if the server resets
/// the stream with it, as it should (RFC 9113 §8.1): a challenge to an upload, or its refusal, would become a failure
/// of the upstream. libcurl also ends the stream as if the body were complete. An answer to a body of one byte can come
/// before it, too: all bodies are sent over HTTP/1.1.
struct VersionSwitch {
    private let minimum: TLSVersion

    /// Creates the switch, or `nil` if it is not needed or the settings fix the version.
    init?(_ settings: ConnectionSettings, mayBeHTTP2: Bool) {
        guard mayBeHTTP2, settings.version == .auto, Self.isNeeded else { return nil }
        minimum = settings.tls.minimum
    }

    private static let isNeeded = CurlFeatures.installed.versionNumber < 0x08_01_00

    /// Returns true if `request` needs HTTP/1.1: the answer may come before its body is sent.
    func applies(to request: ExchangeRequest) -> Bool {
        switch request.framing {
        case .none: false
        case .length(let length): length > 0
        case .chunked: true
        }
    }

    /// Configures `easy` for HTTP/1.1 or back.
    func apply(isHTTP1: Bool, to easy: EasyHandle) throws(CurlError) {
        let version: Curl.HTTPVersion = isHTTP1 ? .http11 : .http2OverTLS
        try easy.set(.httpVersion, version.rawValue)
        // libcurl would reuse an idle HTTP/1.1 connection for a request that could share an HTTP/2 one. Naming the
        // latest TLS version as the maximum changes nothing else, but separates them.
        try easy.set(.sslVersion, isHTTP1 ? minimum.upToLatest : minimum.number)
    }
}
