// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// A server that requests are forwarded to.
package struct UpstreamSettings: Sendable, Equatable {
    /// Its name in the configuration.
    package var name: String
    /// The origin, and the path that a request's path is appended to.
    package var url: WebURL
    /// What is asked of its certificate, and our own.
    package var tls: TLSSettings
    /// Which HTTP is spoken.
    package var http: HTTPVersionPolicy
    /// How long is waited.
    package var timeouts: TimeoutSettings
    /// How much of a request's body is kept to be sent again.
    package var replay: ReplaySettings
    /// The proxy on the way; `nil` for none. The environment's is ignored.
    package var proxy: ProxySettings?
    /// Which `Host` is sent.
    package var host: HostPolicy
    /// What becomes of a caller's own `Authorization`.
    package var callerCredentials: CallerCredentialPolicy
    /// How the caller is told to the upstream.
    package var forwarded: ForwardedPolicy
    /// Whether secrets may go over `http://` to another machine.
    package var plaintext: PlaintextPolicy
    /// Its MobileFirst 8.0 server, where one protects its resources.
    package var mobileFirst: MobileFirstConfiguration?
    /// What it is asked from time to time; `nil`: nothing.
    package var check: UpstreamCheckSettings?

    /// It, as far as logins need to know it.
    package var protected: ProtectedUpstream { ProtectedUpstream(name: name, url: url, mobileFirst: mobileFirst) }
}

/// What is asked of an upstream's certificate, and our own. The files are PEM, by absolute paths.
package struct TLSSettings: Sendable, Equatable {
    /// The authorities trusted instead of the system's.
    package var ca: String?
    /// Our certificate.
    package var certificate: String?
    /// Its private key; stands only beside `certificate`.
    package var key: String?
    /// Digests of public keys, one of which the upstream must have: `sha256//` and base64. Empty: no pin.
    package var pins: [String]
    /// The lowest version spoken.
    package var minimum = LowestTLS.tls12
}

/// The lowest version of TLS that is spoken to an upstream.
package enum LowestTLS: String, Sendable, CaseIterable {
    /// TLS 1.2 or later.
    case tls12 = "1.2"
    /// TLS 1.3 or later.
    case tls13 = "1.3"
}

/// Which HTTP is spoken to an upstream.
package enum HTTPVersionPolicy: String, Sendable, CaseIterable {
    /// HTTP/2 where TLS agrees on it, else 1.1.
    case automatic = "auto"
    /// HTTP/1.1 only.
    case http1 = "1.1"
    /// HTTP/2, without TLS by prior knowledge.
    case http2 = "2"
}

/// How long is waited for an upstream; all greater than zero.
package struct TimeoutSettings: Sendable, Equatable {
    /// Until it is connected, TLS included.
    package var connect: Duration = .seconds(5)
    /// From the request's end until the final head.
    package var response: Duration = .seconds(60)
    /// With nothing sent either way.
    package var idle: Duration = .seconds(300)
    /// For a login as a whole.
    package var login: Duration = .seconds(60)
}

/// How many bytes of a request's body are kept to be sent again.
package struct ReplaySettings: Sendable, Equatable {
    /// In memory.
    package var memory = 65_536
    /// Then in an unlinked file.
    package var disk = 16_777_216
}

/// A proxy between here and an upstream.
package struct ProxySettings: Sendable, Hashable {
    /// How it is spoken to.
    package enum Scheme: String, Sendable, CaseIterable {
        /// HTTP, with `CONNECT` for `https`.
        case http
        /// SOCKS 5, which looks the name up itself.
        case socks5h
    }

    /// How it is spoken to.
    package var scheme: Scheme
    /// Its host; an IPv6 address without brackets.
    package var host: String
    /// Its port.
    package var port: UInt16

    /// `scheme://host:port`, as libcurl takes it.
    package var url: String {
        "\(scheme.rawValue)://\(host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host):\(port)"
    }
}

/// Which `Host` an upstream gets.
package enum HostPolicy: String, Sendable, CaseIterable {
    /// The caller's.
    case pass
    /// The upstream's own authority.
    case upstream
}

/// What becomes of a caller's own `Authorization`.
package enum CallerCredentialPolicy: String, Sendable, CaseIterable {
    /// It goes to the upstream, and nothing of ours instead.
    case keep
    /// The request is refused.
    case refuse
    /// A session's takes its place; where there is none, it goes.
    case replace
}

/// How the caller is told to the upstream.
package enum ForwardedPolicy: String, Sendable, CaseIterable {
    /// By `Forwarded` (RFC 7239).
    case forwarded
    /// Not at all.
    case none
    /// By `X-Forwarded-For`, `-Proto` and `-Host`.
    case xForwarded = "x-forwarded"
}

/// Whether secrets may go over `http://` to another machine.
package enum PlaintextPolicy: String, Sendable, CaseIterable {
    /// They may.
    case allow
    /// They may not.
    case refuse
}
