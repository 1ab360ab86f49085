// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Curl

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
    /// The lowest version of TLS.
    package var minimum = TLSVersion.tls12
    /// The certificates of the authorities trusted, in place of the system's, PEM.
    package var authorities: Blob?
    /// Our certificate, PEM.
    package var certificate: Blob?
    /// Its key, PEM.
    package var key: Blob?
    /// Public keys, one of which the server must have, `sha256//…`, separated by semicolons.
    package var pin: String?
    /// An HTTP or SOCKS5 proxy on the way out, as an address; `nil`: none, whatever the environment says.
    package var proxy: String?

    /// True if secrets may go to another machine in the clear.
    package var allowsPlaintext = false

    /// The defaults: the system's authorities, no proxy.
    package init() {}

    /// True if a connection to `origin` may be one of HTTP/2: it is chosen in the TLS handshake only, unless it is ordered.
    func mayBeHTTP2(to origin: Origin) -> Bool {
        version == .http2 || version == .auto && origin.scheme == .https
    }

    /// True if a secret may go to `origin` by this way: within TLS, or to this very machine. Behind a proxy the loopback
    /// addresses are the proxy's. A name that only resolves to one of them is another machine's: who answers for names
    /// decides what it is.
    func mayCarrySecrets(to origin: Origin) -> Bool {
        origin.scheme == .https || allowsPlaintext || origin.isLoopback && proxy == nil
    }

    /// True if transfers to `origin` may share connections, and take up those of earlier ones. Not over HTTP/2 without TLS with
    /// libcurl before 8.0, where whatever comes second on such a connection fails (curl #10634).
    func sharesConnections(to origin: Origin) -> Bool {
        version != .http2 || origin.scheme == .https || CurlFeatures.installed.versionNumber >= 0x08_00_00
    }

    /// The same for a login server at another origin: what is the upstream's own, and what is meant for it alone, stays.
    /// It is met with the same authorities and by the same way out.
    func elsewhere() -> ConnectionSettings {
        var settings = self
        settings.certificate = nil
        settings.key = nil
        settings.pin = nil
        return settings
    }

    /// Sets `easy` up for transfers to `origin`. Done once per handle.
    package func apply(to easy: EasyHandle, for origin: Origin) throws(CurlError) {
        if !sharesConnections(to: origin) {
            try easy.set(.freshConnect, true)
            try easy.set(.forbidReuse, true)
        }
        switch version {
        case .auto: try easy.set(.httpVersion, Curl.HTTPVersion.http2OverTLS.rawValue)
        case .http1: try easy.set(.httpVersion, Curl.HTTPVersion.http11.rawValue)
        case .http2: try easy.set(.httpVersion, Curl.HTTPVersion.http2PriorKnowledge.rawValue)
        }
        try easy.set(.sslVersion, minimum.rawValue)
        // A libcurl that was built with a folder of authorities trusts that besides bytes or a file; and where there is one
        // it reads the system's file at each handshake, 50 ms long, and keeps it from one to the next where there is none.
        if authorities != nil || easy.hasAuthorities { try easy.clear(.caFolder) }
        if let authorities { try easy.set(.authorities, authorities) }
        if let certificate { try easy.set(.certificate, certificate) }
        if let key { try easy.set(.key, key) }
        if let pin { try easy.set(.pinnedPublicKey, pin) }
        if let proxy {
            try easy.set(.proxy, proxy)
            try easy.set(.httpProxyTunnel, true)
        }
    }
}
