// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
public import Secrets

/// How a `ChallengeClient` makes connections. Environment variables such as `http_proxy` have no influence.
public struct ConnectionOptions: Sendable {
    /// Which versions of HTTP are spoken.
    public enum Version: Sendable {
        /// HTTP/2 where the server offers it in the TLS handshake, HTTP/1.1 else.
        case auto
        /// HTTP/1.1 only.
        case http1
    }

    /// The versions of HTTP.
    public var version = Version.auto
    /// The certificates of the authorities trusted, in PEM; `nil`: the system's.
    public var authorities: [UInt8]?
    /// The program's own certificate, in PEM, for servers that ask for one.
    public var certificate: [UInt8]?
    /// Its key, in PEM.
    public var key: Secret?
    /// Public keys, one of which the server must have: `sha256//…`, separated by semicolons.
    public var pin: String?
    /// A proxy on the way out, `http://` or `socks5h://`; `nil`: none.
    public var proxy: String?
    /// True if secrets may go to another machine without TLS. To this one they may.
    public var allowsPlaintext = false

    /// The defaults.
    public init() {}

    /// The same for a transfer.
    var settings: ConnectionSettings {
        var settings = ConnectionSettings()
        settings.version = version == .auto ? .auto : .http1
        settings.authorities = authorities.map { Blob($0.span) }
        settings.certificate = certificate.map { Blob($0.span) }
        settings.key = key.map { key in key.withBytes { Blob($0) } }
        settings.pin = pin
        settings.proxy = proxy
        settings.allowsPlaintext = allowsPlaintext
        return settings
    }
}
