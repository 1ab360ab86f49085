// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import Curl
public import Secrets

/// The configuration of a `ChallengeClient`: connections, limits, and the providers for logins.
///
/// All defaults are safe: nothing is sent to an origin that is neither requested nor named here, no secret is sent to
/// another machine unencrypted, and each wait has a limit.
public struct ClientConfiguration: Sendable {
    /// The time limits. None is endless.
    public struct Timeouts: Sendable {
        /// Limit for a connection, TLS included; 5 s.
        public var connect = Duration.seconds(5)
        /// Limit for the head of a response, after sending its request; 60 s.
        public var response = Duration.seconds(60)
        /// Limit for the next piece of a response's body, sent or read; 5 minutes.
        public var idle = Duration.seconds(300)
        /// Limit for the next piece of a request's body from the program that sends it; 60 s.
        public var requestBody = Duration.seconds(60)
        /// Limit for a login that a request needs, its challenge handlers included; 3 minutes. The login itself
        /// continues.
        public var login = Duration.seconds(180)
        /// Limit for one answer of a challenge handler, perhaps by a person; 2 minutes.
        public var handler = Duration.seconds(120)

        /// The defaults.
        public init() {}
    }

    /// The limits of numbers and sizes.
    public struct Limits: Sendable {
        /// Concurrent requests; further ones fail with `overloaded`. 256.
        public var requests = 256
        /// Concurrent requests that wait for a login. 256.
        public var waiters = 256
        /// The bytes of a request's body held in memory for a replay after a login; 1 MiB.
        ///
        /// A longer body is streamed; after more than that was sent, a challenge makes the request fail with
        /// `bodyNotReplayable`.
        public var replay = 1024 * 1024

        /// The defaults.
        public init() {}
    }

    /// The time limits.
    public var timeouts = Timeouts()
    /// The limits of numbers and sizes.
    public var limits = Limits()
    /// The connection settings.
    public var connections = ConnectionOptions()
    /// The MobileFirst 8.0 server whose security checks are answered, if there is one.
    public var mobileFirst: MobileFirstServer?
    /// The origins that login forms may be sent to besides the request's own. Servers cannot add to them.
    public var loginOrigins: Set<Origin> = []
    /// The credentials for handlers that use stored ones (`CredentialChallengeHandler`); empty by default.
    public var credentials: any CredentialProvider = FixedCredentials()
    /// The store of rejected credentials, which are not sent again; in memory by default, for the client's lifetime.
    public var attempts: any AttemptStore = UnkeptAttempts()
    /// The store of data that should survive the program, such as a MobileFirst registration; in memory by default.
    public var state: any StateStore = MemoryState()
    /// Called with each step of each login, redacted, on the client's own thread. Must not block.
    public var onStep: @Sendable (ConversationStep) -> Void = { _ in }

    /// Creates the default configuration.
    public init() {}
}

/// A MobileFirst 8.0 server, and the resources that it protects.
public struct MobileFirstServer: Sendable {
    /// Its URL, and the application that this program is registered as.
    public var configuration: MobileFirstConfiguration
    /// The origins of the resources for its access tokens; always includes the server's own.
    public var resources: Set<Origin>
    /// The maker of the key that the program registers with: `RSASigningKeys` of the product `Credentials`.
    public var keys: any SigningKeys

    /// Creates a server.
    public init(_ configuration: MobileFirstConfiguration, resources: Set<Origin> = [], keys: any SigningKeys) {
        self.configuration = configuration
        self.resources = resources.union([configuration.api.origin])
        self.keys = keys
    }
}

/// Connection settings of a `ChallengeClient`. Environment variables such as `http_proxy` have no effect.
public struct ConnectionOptions: Sendable {
    /// The versions of HTTP to use.
    public enum Version: Sendable {
        /// HTTP/2 if the server offers it in the TLS handshake, otherwise HTTP/1.1.
        case auto
        /// HTTP/1.1 only.
        case http1
    }

    /// The versions of HTTP.
    public var version = Version.auto
    /// The trusted CA certificates, in PEM; `nil` for the system's.
    public var authorities: [UInt8]?
    /// The client certificate, in PEM, for servers that ask for one.
    public var certificate: [UInt8]?
    /// Its key, in PEM.
    public var key: Secret?
    /// Public key pins, one of which the server must match: `sha256//…`, separated by semicolons.
    public var pin: String?
    /// The URL of an outbound proxy, `http://` or `socks5h://`; `nil` for direct connections.
    public var proxy: String?
    /// True if secrets may be sent to another machine without TLS. Loopback is always allowed.
    public var allowsPlaintext = false

    /// Creates the defaults.
    public init() {}

    /// The settings for transfers.
    var settings: ConnectionSettings {
        var settings = ConnectionSettings()
        settings.version = version == .auto ? .auto : .http1
        settings.authorities = authorities.map { Blob($0.span) }
        settings.certificate = certificate.map { Blob($0.span) }
        settings.key = key.map { key in key.withBytes { Blob($0) } }
        settings.tls.pins = pin.map { $0.split(separator: ";").map(String.init) } ?? []
        settings.proxy = proxy
        settings.allowsPlaintext = allowsPlaintext
        return settings
    }
}
