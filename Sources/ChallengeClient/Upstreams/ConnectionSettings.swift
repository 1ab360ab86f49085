// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl

/// How connections to an upstream are made.
package struct ConnectionSettings: Sendable, Equatable {
    /// Which versions of HTTP are spoken.
    package enum Version: Sendable, Equatable {
        /// HTTP/2 where the server offers it by ALPN, HTTP/1.1 else.
        case auto
        /// HTTP/1.1 only.
        case http1
        /// HTTP/2 only by ALPN, as `auto`; over plain HTTP with prior knowledge.
        case http2
    }

    /// The versions of HTTP.
    package var version = Version.auto
    /// A file with the certificates of the authorities trusted, in place of the system's.
    package var authorities: String?
    /// A file with our certificate, PEM.
    package var certificate: String?
    /// A file with its key, PEM.
    package var key: String?
    /// The server's public key, `sha256//…`.
    package var pin: String?
    /// An HTTP or SOCKS5 proxy on the way out, as an address; `nil`: none, whatever the environment says.
    package var proxy: String?

    /// The defaults: the system's authorities, no proxy.
    package init() {}

    /// Whether a connection to `origin` may be one of HTTP/2: it is chosen in the TLS handshake only, unless it is ordered.
    func mayBeHTTP2(to origin: Origin) -> Bool {
        version == .http2 || version == .auto && origin.scheme == .https
    }

    /// Sets `easy` up. Done once per handle.
    func apply(to easy: EasyHandle) throws(CurlError) {
        switch version {
        case .auto: try easy.set(.httpVersion, Curl.HTTPVersion.http2OverTLS.rawValue)
        case .http1: try easy.set(.httpVersion, Curl.HTTPVersion.http11.rawValue)
        case .http2: try easy.set(.httpVersion, Curl.HTTPVersion.http2PriorKnowledge.rawValue)
        }
        if let authorities { try easy.set(.caFile, authorities) }
        if let certificate { try easy.set(.sslCertificate, certificate) }
        if let key { try easy.set(.sslKey, key) }
        if let pin { try easy.set(.pinnedPublicKey, pin) }
        if let proxy {
            try easy.set(.proxy, proxy)
            try easy.set(.httpProxyTunnel, true)
        }
    }
}
